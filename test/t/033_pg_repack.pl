# Proves that pg_repack may rewrite the extension's tables under load: it copies
# a table, catches up with what its trigger has noted, and changes the files.
# No call fails, no command is lost or runs twice, and every row is in the
# indexes that it belongs to.
use strict;
use warnings;

use Idem;
use IdemTest;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

my ($sharedir) = run_command([ 'pg_config', '--sharedir' ]);
my ($bindir) = run_command([ 'pg_config', '--bindir' ]);
plan skip_all => 'pg_repack is not installed (Debian package postgresql-15-repack, or that of the server\'s version)'
  unless -e "$sharedir/extension/pg_repack.control";

my @tables = qw(idem_record idem_step idem_intent idem_event);
my $node = Idem::new_node('repack');
$node->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	CREATE EXTENSION pg_repack;
	SELECT idem_define('expired', ttl => '1 us', tombstone_retention => '1 us');
	CREATE TABLE orders (name text);
	CREATE FUNCTION place_order(key text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		t idem_ticket := idem_claim('t', 'atomic', key, wait => '1 min');
	BEGIN
		IF t.outcome = 'execute' THEN
			INSERT INTO orders VALUES ('atomic ' || key);
			PERFORM idem_intend(t, 'mail', 'post');
			PERFORM idem_complete(t, to_json(key));
		ELSIF t.outcome <> 'replay' OR t.response #>> '{}' <> key THEN
			RAISE '% of %', t.outcome, key;
		END IF;
	END $$;
	CREATE PROCEDURE place_leased_order(key text) LANGUAGE plpgsql AS $$
	DECLARE
		t idem_ticket := idem_claim('t', 'leased', key, lease => '1 min', guard => key);
	BEGIN
		COMMIT;
		IF t.outcome = 'execute' THEN
			PERFORM idem_heartbeat(t, '1 hour');
			PERFORM idem_step_done(t, 'one', '1');
			COMMIT;
			INSERT INTO orders VALUES ('leased ' || key);
			PERFORM idem_unknown(t, 'why');
			PERFORM idem_resolve('t', 'leased', t.key, 'succeeded', 'seen', to_json(t.key));
		ELSIF t.outcome NOT IN ('replay', 'in_progress') THEN
			RAISE '% of %', t.outcome, t.key;
		END IF;
	END $$;
	CREATE FUNCTION expire_order(key text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		t idem_ticket := idem_claim('t', 'expired', key);
	BEGIN
		IF t.outcome = 'execute' THEN
			PERFORM idem_complete(t, to_json(key));
		ELSIF t.outcome NOT IN ('expired', 'in_progress') THEN
			RAISE '% of %', t.outcome, key;
		END IF;
		PERFORM idem_sweep(2);
	END $$});

# Two clients on the same keys, and one that hands intents out.
my $folder = PostgreSQL::Test::Utils::tempdir();
append_to_file("$folder/script", q{\set key random(1, 4000)
SELECT place_order(:key::text);
CALL place_leased_order(:key::text);
SELECT expire_order(:key::text);
SELECT count(idem_confirm(i.operation_id, i.token)) FROM idem_dispatch('post', 'w', 2, '1 min') AS i;
});
my ($output, $messages) = ('', '');
my $load = IPC::Run::start(
	[ 'pgbench', '-n', '-c', 2, '-T', 12, '-M', 'prepared', '-f',
		"$folder/script", $node->connstr('postgres') ],
	'>', \$output, '2>', \$messages);

my %file = map { $_ => 1 } files();
my $repacked = 0;
while ($load->pumpable)
{
	my ($out, $err) = ('', '');

	IPC::Run::run([ "$bindir/pg_repack", '-h', $node->host, '-p', $node->port, '-d', 'postgres',
			map { ('-t', $_) } @tables ], '>', \$out, '2>', \$err)
	  or do { fail('pg_repack ends well'); diag($out, $err); last };
	$repacked++;
	$load->pump_nb;
}
ok($load->finish, 'no call fails') or diag($messages);
cmp_ok($repacked, '>', 2, 'the tables were rewritten several times');
is(scalar(grep { $file{$_} } files()), 0, 'every table has another file');
note("rewritten $repacked times; $output");

is($node->safe_psql('postgres', q{
		SELECT count(*) > 100, count(*) - count(DISTINCT name) FROM orders;
		SELECT count(*) FROM orders FULL JOIN idem_record r ON name = operation || ' ' || key
		WHERE coalesce(operation, '') <> 'expired' AND (name IS NULL OR state IS DISTINCT FROM 'succeeded');
		SELECT count(*) FROM idem_record WHERE operation <> 'expired'
		AND (idem_replay(tenant, operation, key)).outcome <> 'replay';
		SELECT count(*) FROM idem_record r WHERE operation = 'leased' AND (
			(SELECT count(*) FROM idem_step s WHERE (s.operation, s.key) = (r.operation, r.key)) <> 1
			OR (SELECT count(*) FROM idem_event e WHERE (e.operation, e.key) = (r.operation, r.key)) <> 2);
		SELECT count(*) FROM idem_record r WHERE operation = 'atomic' AND
			(SELECT count(*) FROM idem_intent i WHERE (i.operation, i.key) = (r.operation, r.key)
			 AND i.state IN ('pending', 'confirmed')) <> 1}),
	"t|0\n0\n0\n0\n0", 'each command has one order, one record, and all that belongs to it');
is($node->safe_psql('postgres', q{
		CREATE EXTENSION amcheck;
		SELECT count(bt_index_check(indexrelid, true)) - count(*) FROM pg_index
		WHERE indrelid::regclass::text IN ('idem_record', 'idem_step', 'idem_intent', 'idem_event')
		AND indisvalid}),
	0, 'and each index has all its rows');

sub files
{
	return split /\n/, $node->safe_psql('postgres',
		join ' UNION ALL ', map { "SELECT '$_ ' || pg_relation_filenode('$_')" } @tables);
}

done_testing();
