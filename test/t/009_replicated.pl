# Proves idempotency.durability = replicated: whatever claims, completes or
# replays waits for the synchronous standby before its COMMIT returns, also
# where the session has turned synchronous_commit off, and is refused where
# there is no such standby.
use strict;
use warnings;

use Idem;
use IdemTest;
use Test::More;

my $primary = Idem::new_node('primary', streaming => 1, conf => q{
max_connections = 30
max_prepared_transactions = 10
});
$primary->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	CREATE TABLE orders (key text);
	CREATE FUNCTION handle(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
	SELECT idem_complete(idem_claim('t', 'o', 'done'), '"answer"');
	ALTER SYSTEM SET idempotency.durability = 'replicated'});
my $token = $primary->safe_psql('postgres', q{
	SELECT token FROM idem_claim('t', 'o', 'leased', lease => '1 hour')});
my $standby = Idem::new_standby('standby', $primary);
$primary->reload;
wait_for($primary, q{
	SELECT current_setting('idempotency.durability', true) = 'replicated'});

# Without a synchronous standby nothing is promised.
for (
	q{SELECT idem_claim('t', 'o', 'new', lease => '1 hour')},
	q{SELECT idem_complete(idem_claim('t', 'o', 'new'))},
	"SELECT idem_complete('t', 'o', 'leased', $token)",
	"SELECT idem_fail('t', 'o', 'leased', $token)",
	"SELECT idem_release('t', 'o', 'leased', $token)",
	"SELECT idem_heartbeat('t', 'o', 'leased', $token, '2 hours')",
	"SELECT idem_hold('t', 'o', 'leased', $token)",
	q{SELECT idem_replay('t', 'o', 'done')},
	q{SELECT idem_replay('t', 'o', 'never')},
	q{SELECT idem_claim_batch('t', 'o', '{a,b}')},
	q{SELECT idem_execute('t', 'o', 'new', '1', 'handle(jsonb)')})
{
	is(sqlstate($primary, $_), 'ID503', "no standby: $_");
}
is($primary->safe_psql('postgres',
		q{SELECT count(*) FROM idem_record WHERE key <> 'done'}),
	1, 'nothing was written');
my $overview = q{SELECT durability, standbys_required, standbys_connected
	FROM idem_overview WHERE operation IS NULL};
is($primary->safe_psql('postgres', $overview), 'replicated|0|0',
	'idem_overview: none is configured');

$primary->append_conf('postgresql.conf',
	"synchronous_standby_names = 'standby'");
$primary->reload;
wait_for($primary,
	q{SELECT sync_state = 'sync' FROM pg_stat_replication});
is($primary->safe_psql('postgres', $overview), 'replicated|1|1',
	'idem_overview: it is connected');

# The standby stops answering.
my $receiver =
  $standby->safe_psql('postgres', 'SELECT pid FROM pg_stat_wal_receiver');
sub pause { kill 'STOP', $receiver }
sub go_on { kill 'CONT', $receiver }
END { kill 'CONT', $receiver if defined $receiver }

# All at once; each in a session that does not want to wait.
my %waits = (
	'leased claim' => q{SELECT idem_claim('t', 'o', 'k1', lease => '1 hour')},
	'atomic command' => q{INSERT INTO orders VALUES ('k2');
		SELECT idem_complete(idem_claim('t', 'o', 'k2'))},
	'execute' => q{SELECT idem_execute('t', 'o', 'k6', '1', 'handle(jsonb)')},
	'batch' => q{SELECT idem_complete_batch(array_agg(b))
		FROM idem_claim_batch('t', 'o', '{k3,k4}') AS b},
	'heartbeat' => "SELECT idem_heartbeat('t', 'o', 'leased', $token, '2 hours')",
	'replay' => q{SELECT outcome FROM idem_replay('t', 'o', 'done')},
	'replay by a claim' => q{SELECT outcome FROM idem_claim('t', 'o', 'done')},
	'replay, READ ONLY' => q{SET TRANSACTION READ ONLY;
		SELECT outcome FROM idem_replay('t', 'o', 'done')},
	'replay, SERIALIZABLE' => q{SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;
		SELECT outcome FROM idem_replay('t', 'o', 'done')},
	'mismatch' => q{SELECT outcome FROM idem_claim('t', 'o', 'done', '1')},
	'synchronous_commit off at the end' =>
	  q{SELECT idem_complete(idem_claim('t', 'o', 'k5'));
		SET LOCAL synchronous_commit = off},
	'rolled back savepoint' => q{SAVEPOINT s;
		SELECT outcome FROM idem_replay('t', 'o', 'done'); ROLLBACK TO s;
		INSERT INTO orders VALUES ('s')});
my %sessions = map { $_ => session($primary) } keys %waits;
my $asynchronous = session($primary);

pause();
for my $what (sort keys %waits)
{
	my $level = $what =~ /claim/ ? 'local' : 'off';

	$sessions{$what}->query_safe(
		"SET synchronous_commit = $level; SET application_name = '$what'");
	start_query($sessions{$what}, "BEGIN; $waits{$what}; COMMIT");
}
my $waiting = q{SELECT string_agg(application_name, '; '
	ORDER BY application_name COLLATE "C")
	FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND state = 'active'
	AND query ~ 'COMMIT'};
my $all = join '; ', sort keys %waits;
wait_for($primary, "SELECT ($waiting) = '$all'");
is($primary->safe_psql('postgres', $waiting), $all, 'all COMMITs wait');

# The controls: what promises nothing does not wait.
$asynchronous->query_safe(q{
	SET synchronous_commit = off;
	INSERT INTO orders VALUES ('control');
	SELECT idem_replay('t', 'o', 'never');
	BEGIN;
	SELECT idem_claim('t', 'o', 'never');
	ROLLBACK;
	SET idempotency.durability = 'local';
	SELECT idem_complete(idem_claim('t', 'o', 'local'));
	SELECT idem_replay('t', 'o', 'done')});
pass('a plain commit, an absent replay, a rollback and local durability do not');

# Prepared transactions wait at PREPARE.
start_query($asynchronous, q{RESET idempotency.durability;
	SET application_name = 'prepare';
	BEGIN; SELECT idem_complete(idem_claim('t', 'o', 'prepared'));
	PREPARE TRANSACTION 'p'});
wait_for($primary, q{SELECT count(*) = 1 FROM pg_stat_activity
	WHERE wait_event = 'SyncRep' AND application_name = 'prepare'});
pass('PREPARE waits');

go_on();
for (sort keys %waits)
{
	my ($output, $messages) = answer($sessions{$_});

	is($messages, '', "$_: returns when the standby goes on");
	is($sessions{$_}->query_safe('SHOW synchronous_commit'),
		/claim/ ? 'local' : 'off', "$_: the setting is the session's again");
}
is((answer($asynchronous))[1], '', 'PREPARE returns');
$asynchronous->query_safe(q{ROLLBACK PREPARED 'p'});

# A wait that is cancelled: committed here, and the client is warned.
pause();
start_query($asynchronous, q{SET application_name = 'cancelled';
	SELECT idem_complete(idem_claim('t', 'o', 'cancelled'), '1')});
my $cancelled = q{FROM pg_stat_activity
	WHERE wait_event = 'SyncRep' AND application_name = 'cancelled'};
wait_for($primary, "SELECT count(*) = 1 $cancelled");
$primary->safe_psql('postgres', "SELECT pg_cancel_backend(pid) $cancelled");
like((answer($asynchronous))[1],
	qr/WARNING:  canceling wait for synchronous replication due to user request/,
	'a cancelled wait gives a warning');
start_query($asynchronous, q{SELECT outcome
	FROM idem_replay('t', 'o', 'cancelled')});
wait_for($primary, "SELECT count(*) = 1 $cancelled");
pass('and asking again waits until it is safe');
go_on();
is(answer($asynchronous), 'replay', 'then it is replayed');

$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', q{
		SELECT string_agg(key, ' ' ORDER BY key) FROM idem_record
		WHERE state = 'succeeded'}),
	'cancelled done k2 k3 k4 k5 k6 local', 'the standby has all of it');

$_->quit for $asynchronous, values %sessions;
done_testing();
