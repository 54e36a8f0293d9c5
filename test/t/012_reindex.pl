# Proves that the indexes on which everything rests can be rebuilt under load:
# REINDEX CONCURRENTLY of one after the other, VACUUM and VACUUM FULL, while
# clients claim and records are swept; no call fails, no command runs twice, and
# every row is in the indexes that it belongs to.
use strict;
use warnings;

use Idem;
use IdemTest;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = 6;
my $node = Idem::new_node('reindex');
$node->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	CREATE TABLE orders (key text);
	CREATE FUNCTION place_order(key text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		t idem_ticket := idem_claim('t', 'o', key, wait => '1 min');
	BEGIN
		IF t.outcome = 'execute' THEN
			INSERT INTO orders VALUES (key);
			PERFORM idem_complete(t, to_json(key));
		ELSIF t.outcome <> 'replay' OR t.response #>> '{}' <> key THEN
			RAISE '% of %', t.outcome, key;
		END IF;
		IF (idem_replay('t', 'o', key)).outcome <> 'replay' THEN
			RAISE '% is not replayed', key;
		END IF;
	END $$;
	CREATE PROCEDURE place_leased_order(key text) LANGUAGE plpgsql AS $$
	DECLARE
		t idem_ticket := idem_claim('t', 'leased', key, lease => '1 min');
	BEGIN
		COMMIT;
		IF t.outcome = 'execute' THEN
			PERFORM idem_heartbeat(t, '1 hour');
			COMMIT;
			INSERT INTO orders VALUES (t.operation || t.key);
			PERFORM idem_complete(t, to_json(t.key));
		ELSIF t.outcome NOT IN ('replay', 'in_progress') THEN
			RAISE '% of %', t.outcome, t.key;
		END IF;
	END $$;
	CREATE FUNCTION expire_order(key text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		t idem_ticket := idem_claim('t', 'expired', key, guard => key, ttl => '1 us');
	BEGIN
		IF t.outcome = 'execute' THEN
			PERFORM idem_complete(t, to_json(key));
		ELSIF t.outcome NOT IN ('expired', 'in_progress') THEN
			RAISE '% of %', t.outcome, key;
		END IF;
		PERFORM idem_sweep(2);
	END $$});

# Two clients on the same keys.
my $folder = PostgreSQL::Test::Utils::tempdir();
append_to_file("$folder/script", q{\set key random(1, 3000)
SELECT place_order(:key::text);
CALL place_leased_order(:key::text);
SELECT expire_order(:key::text);
});
my ($output, $messages) = ('', '');
my $load = IPC::Run::start(
	[ 'pgbench', '-n', '-c', 2, '-T', $seconds, '-M', 'prepared', '-f',
		"$folder/script", $node->connstr('postgres') ],
	'>', \$output, '2>', \$messages);

my $session = session($node);
my @indexes = split /\n/, $node->safe_psql('postgres',
	q{SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'idem_record'::regclass ORDER BY 1});
cmp_ok(@indexes, '>', 4, 'there are indexes');
my $rebuilt = 0;
while ($load->pumpable)
{
	$session->query_safe("REINDEX INDEX CONCURRENTLY $indexes[$rebuilt % @indexes]");
	$session->query_safe('VACUUM idem_record');
	$session->query_safe('VACUUM FULL idem_record') if $rebuilt++ % 20 == 10;
	$load->pump_nb;
}
ok($load->finish, 'no call fails') or diag($messages);
cmp_ok($rebuilt, '>', 10, 'the indexes were rebuilt several times');
note("rebuilt $rebuilt times; $output");

is($node->safe_psql('postgres', q{
		SELECT count(*) > 100, count(*) - count(DISTINCT key),
			count(*) - (SELECT count(*) FROM idem_record
						WHERE state = 'succeeded' AND operation <> 'expired') FROM orders}),
	't|0|0', 'each command has one order and one record');
is($node->safe_psql('postgres', q{
		SET enable_indexscan = off; SET enable_indexonlyscan = off;
		SET enable_bitmapscan = off;
		SELECT count(*) - count(DISTINCT (tenant, operation, key))
		FROM idem_record}),
	0, 'nor is one hidden from the index');
is($node->safe_psql('postgres', q{
		SELECT count(*) FROM idem_record
		WHERE (idem_replay(tenant, operation, key)).outcome <> 'replay'
		AND state = 'succeeded' AND operation <> 'expired'}),
	0, 'and the index finds them all');
is($node->safe_psql('postgres', q{
		SELECT count(*) FROM pg_index
		WHERE indrelid = 'idem_record'::regclass}), 5, 'no index is left over');
is($node->safe_psql('postgres', q{
		CREATE EXTENSION amcheck;
		SELECT count(bt_index_check(indexrelid, true)) FROM pg_index
		WHERE indrelid = 'idem_record'::regclass}), 5, 'and each has all its rows');

$session->quit;
done_testing();
