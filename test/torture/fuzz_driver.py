"""The plpgsql function that makes the calls, without the calls: these are written by fuzz_calls.py."""

import re

from fuzz_values import HALF


def told(state, row="m"):
    """Remembers how a command is known to have ended."""
    columns = (f"{row}.tenant, {row}.operation, {row}.key" if row else "m_tenant, m_operation, m_key")
    return (f"INSERT INTO told VALUES ({columns}, {state}) ON CONFLICT (tenant, operation, key) DO UPDATE "
            "SET ended = coalesce(told.ended, excluded.ended), "
            "clash = told.clash OR coalesce(told.ended <> excluded.ended, false);")


CAPTURE = f"""slot := 1 + ((random() * 8192)::int & {HALF - 1});
					IF t.token IS NOT NULL THEN
						tickets[slot] := t;
						IF t.lease_until IS NULL THEN open := open || t; END IF;
						IF t.lease_until IS NOT NULL AND t.attempt = 1 THEN {told('NULL', 't')} END IF;
					ELSE
						tickets[slot + {HALF}] := t;
					END IF;"""
CAPTURE_INTENT = f"""slot := 1 + ((random() * 8192)::int & {2 * HALF - 1});
					intents[slot] := n.operation_id; tokens[slot] := n.token;"""

PLACE = f"1 + ((random() * 8192)::int & {2 * HALF - 1})"
GOOD_PLACE = f"1 + ((random() * 8192)::int & {HALF - 1}) + CASE WHEN random() < wild THEN {HALF} ELSE 0 END"
BLANK = "E' \\t\\n\\x0b\\f\\r'"


def refused(field, limit):
    return (f"coalesce(NOT (char_length({field}) <= {limit} AND ltrim({field}, {BLANK}) <> ''), true)")


# Which ticket, address and intent the next call is about.
CHOOSE = f"""m := tickets[{GOOD_PLACE}];
		IF random() < fresh[f] THEN
			m.tenant := p_tenant[{GOOD_PLACE}];
			m.operation := p_operation[{GOOD_PLACE}];
			m.key := p_key[{GOOD_PLACE}];
		ELSIF random() < wild THEN
			CASE (random() * 1000)::int % 12
				WHEN 0 THEN m.token := p_token[{PLACE}];
				WHEN 1 THEN m.token := m.token # 1;
				WHEN 2 THEN m.tenant := p_tenant[{PLACE}];
				WHEN 3 THEN m.operation := p_operation[{PLACE}];
				WHEN 4 THEN m.key := p_key[{PLACE}];
				WHEN 5 THEN m.outcome := p_text[{PLACE}];
				WHEN 6 THEN m.state := p_decision[{PLACE}]; m.attempt := p_code[{PLACE}];
				WHEN 7 THEN m.created_at := '-infinity'; m.expires_at := 'infinity';
				WHEN 8 THEN m.lease_until := '-infinity'; m.completed_at := 'infinity';
				WHEN 9 THEN m.response := p_json[{PLACE}]; m.headers := p_jsonb[{PLACE}];
				WHEN 10 THEN m.body := p_body[{PLACE}]; m.retry_after := p_ttl[{PLACE}];
				ELSE m := p_ticket[{PLACE}];
			END CASE;
		END IF;
		m_tenant := m.tenant; m_operation := m.operation; m_key := m.key; m_token := m.token;
		m_bad := {refused('m_tenant', 128)} OR {refused('m_operation', 128)}
			OR {refused('m_key', 255)};
		slot := {PLACE};
		m_intent := intents[slot];
		m_intent_token := tokens[CASE WHEN random() < wild THEN {PLACE} ELSE slot END];
		IF f = batch THEN
			CASE (random() * 1000)::int % 10
				WHEN 0 THEN ms := NULL;
				WHEN 1 THEN ms := '{{}}';
				WHEN 2 THEN ms := ARRAY[m, NULL];
				WHEN 3 THEN ms := ARRAY[ARRAY[m], ARRAY[m]];
				WHEN 4 THEN ms := array_fill(m, ARRAY[2], ARRAY[5]);
				WHEN 5 THEN ms := tickets;
				WHEN 6 THEN ms := open;
				WHEN 7 THEN ms := ARRAY[m, tickets[{GOOD_PLACE}], tickets[{GOOD_PLACE}]];
				ELSE ms := ARRAY[m];
			END CASE;
		END IF;"""

DRIVER = """
CREATE FUNCTION fuzz(calls int, seed float8, finish boolean, trace boolean,
                     OUT ok bigint, OUT seen text[], OUT faults jsonb)
LANGUAGE plpgsql SET jit = off SET plan_cache_mode = force_generic_plan AS $fuzz$
DECLARE
	@declarations@
	f int; slot int; wild float8; bad boolean; r float8; fault text; message text;
	batch CONSTANT int := @batch@;
	m idem_ticket; m_tenant text; m_operation text; m_key text; m_token bigint; m_bad boolean;
	ms idem_ticket[]; m_intent uuid; m_intent_token bigint;
	tickets idem_ticket[]; open idem_ticket[] := '{}'; t idem_ticket; n idem_intent;
	intents uuid[]; tokens bigint[];
BEGIN
	PERFORM setseed(seed);
	@load@
	SELECT k.tickets, k.intents, k.tokens INTO tickets, intents, tokens FROM kept k;
	IF tickets IS NULL THEN
		tickets := p_ticket; intents := p_uuid; tokens := p_token;
	END IF;
	ok := 0;
	seen := array_fill(''::text, ARRAY[@count@]);
	faults := '[]';
	FOR i IN 1 .. calls LOOP
		f := weights[1 + (random() * 1048576)::int % @weight@];
		r := random();
		wild := CASE WHEN r < 0.4 THEN 0 WHEN r < 0.85 THEN 0.08 ELSE 0.5 END;
		@choose@
		fault := NULL;
		bad := NULL;
		BEGIN
			CASE f
@branches@			END CASE;
			ok := ok + 1;
			IF bad THEN
				fault := 'accepted';
			END IF;
		EXCEPTION WHEN OTHERS THEN
			IF position(SQLSTATE IN seen[f]) = 0 THEN
				seen[f] := seen[f] || SQLSTATE || ' ';
			END IF;
			IF position(SQLSTATE IN allowed[f]) = 0
			   OR (is_strict[f] AND bad IS NOT TRUE AND SQLSTATE IN ('22004', '22023')
				   AND SQLERRM <> 'lease is longer than the policy allows') THEN
				fault := SQLSTATE;
				message := SQLERRM;
			END IF;
		END;
		IF fault IS NOT NULL THEN
			faults := faults || jsonb_build_object('fault', fault, 'i', i, 'message', left(message, 300),
												   'call', CASE f @shows@ END);
			EXIT WHEN jsonb_array_length(faults) >= 5;
		END IF;
	END LOOP;
	IF finish THEN
		FOREACH t IN ARRAY open LOOP
			BEGIN
				PERFORM idem_complete(t);
				@told@
			EXCEPTION WHEN SQLSTATE 'ID002' OR SQLSTATE 'ID003' THEN
				NULL;
			END;
		END LOOP;
	END IF;
	DELETE FROM kept;
	INSERT INTO kept VALUES (tickets, intents, tokens);
END
$fuzz$;
"""


def without_subtransactions(text, claims):
    """The driver once more: the first error ends it, and no call has a subtransaction.  It begins
    with a claim, and goes on with its ticket."""
    text = text.replace(f"m := tickets[{GOOD_PLACE}];",
                        f"m := CASE WHEN i > 1 THEN t ELSE tickets[{GOOD_PLACE}] END;")
    text = text.replace("\t\tr := random();", f"""\t\tIF i = 1 THEN
			f := (ARRAY{claims})[1 + (random() * 4096)::int % {len(claims)}];
		END IF;
		r := random();""")
    text = re.sub(r"\t\tEXCEPTION WHEN OTHERS.*?\n\t\tEND;", "\t\tEND;", text, flags=re.S)
    text = re.sub(r"\t\t\tEXCEPTION WHEN SQLSTATE.*?\n\t\t\tEND;", "\t\t\tEND;", text, flags=re.S)
    text = text.replace("WHEN r < 0.4 THEN 0", "WHEN r < 0.9 THEN 0")
    text = text.replace("PERFORM idem_complete(t);", "CONTINUE WHEN EXISTS (SELECT FROM told o WHERE "
                        "(o.tenant, o.operation, o.key) = (t.tenant, t.operation, t.key) "
                        "AND o.ended IS NOT NULL); PERFORM idem_complete(t);")
    return text.replace("CREATE FUNCTION fuzz(", "CREATE FUNCTION fuzz_plain(")
