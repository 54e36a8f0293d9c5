# Proves that the comment of each function names the SQLSTATEs that it raises:
# each is called with NULLs, with bad values, read-only, by a session that is
# bound to another tenant, without the standby that it was promised, in a copy,
# and while somebody holds the address.  The codes of these last five are named
# by the comments of those functions alone that raise them.
use strict;
use warnings;

use Idem;
use IdemTest;
use Test::More;

my $node = Idem::new_node('errors');
$node->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	CREATE FUNCTION handler(request jsonb) RETURNS json LANGUAGE sql AS $$ SELECT '1'::json $$;

	-- The SQLSTATE of a command after "setup"; both are rolled back.
	CREATE FUNCTION code_of(setup text, command text) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE setup;
		EXECUTE command;
		RAISE SQLSTATE 'ROLLB';
	EXCEPTION WHEN OTHERS THEN
		RETURN nullif(sqlstate, 'ROLLB');
	END $$;

	-- What a comment says, and what it refers to for more.
	CREATE FUNCTION named(name text) RETURNS SETOF text LANGUAGE sql AS $$
		WITH RECURSIVE said (name, errors) AS (
			SELECT p.proname::text COLLATE "default", substring(obj_description(p.oid, 'pg_proc') FROM 'Errors:(.*?)Tables:')
			FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
			),
		source (name) AS (
			SELECT named.name COLLATE "default"
			UNION
			SELECT m[1] COLLATE "default" FROM source JOIN said USING (name), regexp_matches(said.errors, 'idem_\w+', 'g') AS m
			WHERE said.errors ~ ('as ([^;]* and )?' || m[1]))
		SELECT DISTINCT m[1] FROM source JOIN said USING (name), regexp_matches(said.errors, '\m[0-9A-Z]{5}\M', 'g') AS m
	$$;

	-- A command with an intent of each kind, and one whose claim is open elsewhere.
	CREATE TABLE held AS SELECT t AS ticket FROM idem_claim('t', 'o', 'held', '1', lease => '1 h') AS t;
	SELECT idem_intend(ticket, name, 'bank') FROM held, unnest(ARRAY['pending', 'sent', 'asked']) AS name;
	SELECT idem_unknown(idem_claim('t', 'o', 'unknown', lease => '1 h'), 'why');
	SELECT idem_claim('t', 'o', 'lapsed', lease => '1 us');
	SELECT idem_unknown(idem_claim('t', 'o', 'decided', lease => '1 h'), 'why');
	SELECT idem_resolve('t', 'o', 'decided', 'released', 'nothing happened');
	SELECT idem_define('asked', ttl => '1 day')});
$node->safe_psql('postgres', q{
	SELECT idem_send(idem_operation_id('t', 'o', 'held', 'sent'), 'w', '1 h'),
		   idem_send(idem_operation_id('t', 'o', 'held', 'asked'), 'w', '1 us');
	SELECT idem_reconcile('bank', 'w', 1, '1 h')});

my $ticket = '(SELECT ticket FROM held)';
my $parts = "'t', 'o', 'held', (SELECT (ticket).token FROM held)";
sub intent
{
	my ($name) = @_;

	return "idem_operation_id('t', 'o', 'held', '$name')";
}
sub with_token
{
	my ($name) = @_;

	return intent($name) . ', (SELECT token FROM idem_intent WHERE name = ' . "'$name')";
}

# Good calls.
my %calls = (
	idem_adopt => [ '', 'physical => true' ],
	idem_cancel => [ q{'t', 'o', 'new', 'why'}, q{'t', 'o', 'held', 'why'}, q{'t', 'o', 'decided', 'why'} ],
	idem_claim => [ q{'t', 'o', 'open', lease => '1 h', wait => '1 min'}, q{'t', 'o', 'new'}, q{'t', 'o', 'lapsed'} ],
	idem_claim_batch => [ q{'t', 'o', '{new,open}', wait => '1 min'}, q{'t', 'o', '{lapsed}'} ],
	idem_complete => [ $ticket, $parts ],
	idem_complete_batch => [ "ARRAY[$ticket]" ],
	idem_confirm => [ with_token('sent') ],
	idem_define => [ q{'new'} ],
	idem_defer => [ with_token('sent') . q{, 'why'} ],
	idem_dispatch => [ q{'bank', 'w', 1, '1 h'} ],
	idem_durability => [ '' ],
	idem_execute => [ q{'t', 'o', 'open', '1', 'handler(jsonb)', wait => '1 min'}, q{'t', 'o', 'lapsed', NULL, 'handler(jsonb)'} ],
	idem_fail => [ $ticket, $parts ],
	idem_fingerprint => [ q{'1'} ],
	idem_grant => [ q{'pg_monitor', 'monitor'} ],
	idem_heartbeat => [ "$ticket, '1 h'", "$parts, '1 h'" ],
	idem_history => [ q{'t', 'o', 'held'} ],
	idem_hold => [ $ticket, $parts ],
	idem_intend => [ "$ticket, 'new', 'bank'" ],
	idem_operation_id => [ q{'t', 'o', 'held', 'n'} ],
	idem_reconcile => [ q{'bank', 'w', 1, '1 h'} ],
	idem_recover => [ q{'w', 10, '1 h'} ],
	idem_reject => [ with_token('sent') . q{, 'why'} ],
	idem_release => [ $ticket, $parts ],
	idem_replay => [ q{'t', 'o', 'held'} ],
	idem_require => [ $ticket ],
	idem_resolve => [ q{'t', 'o', 'unknown', 'failed', 'why'} ],
	idem_retry => [ intent('pending') . q{, 'why'} ],
	idem_revoke => [ q{'pg_monitor'} ],
	idem_send => [ intent('pending') . q{, 'w', '1 h'} ],
	idem_settle => [ with_token('asked') . q{, 'happened', '1'} ],
	idem_stat_get => [ '' ],
	idem_stat_reset => [ '' ],
	idem_step => [ "$ticket, 'new'" ],
	idem_step_done => [ "$ticket, 'new', '1'" ],
	idem_sweep => [ '1' ],
	idem_tenant_allowed => [ q{'t'} ],
	idem_unknown => [ "$ticket, 'why'" ]);

# Bad ones: NULL everywhere, and what no type but the own check refuses.
my %bad = (text => q{' '}, interval => q{'-1 s'}, integer => '-1', bigint => '-1',
	'text[]' => q{'{" "}'}, 'interval[]' => 'NULL', 'idem_ticket' => $ticket, jsonb => 'NULL');
for (split /\n/, $node->safe_psql('postgres', q{
	SELECT proname, array(SELECT format_type(t, NULL) FROM unnest(proargtypes) AS t)
	FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND proname LIKE 'idem\_%' AND prokind = 'f'
	  AND prorettype <> 'trigger'::regtype AND obj_description(oid, 'pg_proc') NOT LIKE 'Internal:%'}))
{
	my ($name, $types) = /^(\w+)\|\{(.*)\}$/ or die $_;
	my @types = map { s/"//gr } split /,/, $types;

	ok($calls{$name}, "$name is called");
	next unless @types;
	push @{ $calls{$name} }, join(', ', map { "NULL::$_" } @types),
	  join(', ', map { ($bad{$_} // 'NULL') . "::$_" } @types);
}

my %circumstances = (
	as_it_is => [ '', '' ],
	read_only => [ 'SET transaction_read_only = on', '', '25006' ],
	tenant => [ q{SET idempotency.allowed_tenants = 'other'}, '', '42501' ],
	replicated => [ 'SET idempotency.durability = replicated', '', 'ID503' ],
	copy => [ 'UPDATE idem_origin SET database = 1', '', 'ID006' ],
	held => [ q{SET lock_timeout = '10 ms'}, q{
		SELECT idem_claim('t', 'o', 'open');
		SELECT idem_lock('t', 'o', 'held'), idem_lock('t', 'o', 'unknown')}, '55P03' ]);

my %raised;
for my $name (sort keys %circumstances)
{
	my ($setup, $meanwhile, $code) = @{ $circumstances{$name} };
	my $other = session($node);

	$other->query_safe("BEGIN; $meanwhile") if $meanwhile;
	my @tries = map { my $f = $_; map { [ $f, "SELECT $f($_)" ] } @{ $calls{$f} } } sort keys %calls;
	my @codes = split /\n/, $node->safe_psql('postgres', 'SELECT code_of($s$' . $setup . '$s$, command) FROM (VALUES '
		. join(', ', map { "($_, \$c\$$tries[$_][1]\$c\$)" } 0 .. $#tries) . ') AS v (place, command) ORDER BY place'), -1;
	for (0 .. $#tries)
	{
		$raised{ $tries[$_][0] }{ $codes[$_] } = "$name: $tries[$_][1]" if $codes[$_];
	}
	$other->quit;
}

my @circumstantial = grep { $_ } map { $_->[2] } values %circumstances;
for my $function (sort keys %calls)
{
	my %named = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', "SELECT named('$function')");

	is(join(', ', map { "$_ by $raised{$function}{$_}" } grep { !$named{$_} } sort keys %{ $raised{$function} }),
		'', "$function names what it raises");
	# these name the right that they need from their caller, see TAP 046_grants
	delete $named{42501} if $function =~ /^idem_(grant|revoke)$/;
	is(join(' ', sort grep { $named{$_} && !$raised{$function}{$_} } @circumstantial),
		'', "$function raises what it names");
	is(join(' ', grep { $named{'55P03'} xor $named{$_} } '57014', '40P01'),
		'', "$function names all that can end a wait for a lock, or nothing");
}

done_testing();
