# Proves that maintenance shows how far it is, to a role that may see nothing
# else; that a cancel or a crash in its middle loses nothing and leaves nothing
# behind; that several at once share the work and count nothing twice; and that
# it stays well under the size of the lock table (case 23); that it rests between
# its batches, and waits for no flush.
use strict;
use warnings;

use Idem;
use IdemTest;
use Test::More;

my $node = Idem::new_node('maintain', streaming => 1, conf => q{
shared_preload_libraries = 'idempotency'
max_connections = 20
max_locks_per_transaction = 10
autovacuum = off
});
$node->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	CREATE ROLE looker LOGIN;
	GRANT SELECT ON idem_progress TO looker;
	CREATE PROCEDURE fill(operation text, n integer) LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1 .. n LOOP
			PERFORM idem_complete(idem_claim('t', operation, i::text, ttl => '1 us'), '"gone"', 200, i::text);
			IF i % 100 = 0 THEN
				COMMIT;
			END IF;
		END LOOP;
		COMMIT;
	END $$});
my $swept = 'SELECT count(*) - count(response) FROM idem_record';

# Stopped in the middle: the lock comes in between two of its batches.
$node->safe_psql('postgres', q{CALL fill('a', 20000)});
my ($worker, $stopper) = (session($node), session($node));
$worker->query_safe(q{SET application_name = 'mine'});
start_query($worker, q{CALL idem_maintain(batch => 1)});
wait_for($node, 'SELECT rows_done > 20 FROM idem_progress');
$stopper->query_safe('BEGIN; LOCK TABLE idem_record IN SHARE MODE');
my ($done, $left) = split /\|/, $node->safe_psql('postgres',
	'SELECT rows_done, rows_left FROM idem_progress', extra_params => [ '-U', 'looker' ]);
is($node->safe_psql('postgres', $swept), $done, 'what it says is done is done, and committed');
is($done + $left, 20000, 'and the rest is left');
cmp_ok($left, '>', 0, 'it is in the middle');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_stat_activity
		WHERE pid = (SELECT pid FROM idem_progress) AND query_start = (SELECT started_at FROM idem_progress)
		AND application_name ~ '^idem_maintain: '}), 1, 'since when, and in whose session');

$node->safe_psql('postgres', 'SELECT pg_cancel_backend(pid) FROM idem_progress');
my (undef, $messages) = answer($worker);
like($messages, qr/canceling statement due to user request/, 'cancelled');
$stopper->query_safe('COMMIT');
is($node->safe_psql('postgres', $swept), $done, 'no finished batch is lost');
is($worker->query_safe('SHOW application_name'), 'mine', 'the session has its name again');
is($node->safe_psql('postgres', 'SELECT count(*) FROM idem_progress'), 0, 'no progress is shown any more');

# Killed in the middle, with the whole server.
start_query($worker, q{CALL idem_maintain(batch => 1)});
wait_for($node, "SELECT ($swept) > $done + 20");
crash($node, $worker, $stopper);
cmp_ok($done = $node->safe_psql('postgres', $swept), '<', 20000, 'killed in the middle');
is($node->safe_psql('postgres', q{SELECT count(*) FROM idem_record
		WHERE (state, resource, code) IS DISTINCT FROM ('succeeded', key, 200) OR response::text <> '"gone"'}),
	0, 'every record is whole, before or after its sweep');

# Four at once finish the rest: the counts add up.
my @workers = map { session($node) } 1 .. 4;
start_query($_, 'CALL idem_maintain(batch => 7)') for @workers;
my $sum = 0;
for (@workers)
{
	my (undef, $said) = answer($_);
	$sum += $1 if $said =~ /swept (\d+), purged 0, moved 0/;
	unlike($said, qr/ERROR/, 'none fails');
}
# what one had locked another one has skipped
my (undef, undef, $last) = $node->psql('postgres', 'CALL idem_maintain()', stderr => \my $stderr);
$sum += $1 if $stderr =~ /swept (\d+)/;
is($sum, 20000 - $done, 'swept once each');
is($node->safe_psql('postgres', $swept), 20000, 'all swept');

# The largest batch takes a small part of a small lock table.
$node->safe_psql('postgres', q{CALL fill('b', 3000); SELECT idem_define('a', tombstone_retention => '1 us')});
my $sweeper = session($node);
$sweeper->query_safe('BEGIN');
my ($n, $purged, $more) = split /\|/, $sweeper->query_safe('SELECT * FROM idem_sweep(10000)');
is($more, 't', 'there is more');
is($n, $purged, 'as many purged as swept');
my $locks = $node->safe_psql('postgres', q{SELECT current_setting('max_locks_per_transaction')::integer
	* (current_setting('max_connections')::integer + coalesce(current_setting('autovacuum_worker_slots', true), current_setting('autovacuum_max_workers'))::integer + 1
	   + current_setting('max_worker_processes')::integer + current_setting('max_wal_senders')::integer
	   + current_setting('max_prepared_transactions')::integer)});
# From 17 on the server has some processes more, of 10 locks each.
cmp_ok(abs($n - $locks / 10), '<', 6, 'each is a tenth of the lock table');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}),
	$n + $purged, 'a lock each');
start_query($workers[0], 'CALL idem_maintain(batch => 10000)');
(undef, $messages) = answer($workers[0]);
like($messages, qr/NOTICE:  swept \d+, purged \d+, /, 'beside a second one');
$sweeper->query_safe('COMMIT');
$node->safe_psql('postgres', 'CALL idem_maintain()');
# Guards have locks of their own: what lapsed and is given up, what is swept,
# and what is purged, take no more than half of the table together.
$node->safe_psql('postgres', q{
	SELECT idem_complete(idem_claim('t', 'guarded', i::text, guard => i::text, ttl => '1 us'), '"gone"')
	FROM generate_series(1, 100) AS i});
$sweeper->query_safe('BEGIN');
($n) = split /\|/, $sweeper->query_safe('SELECT * FROM idem_sweep(10000)');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}),
	2 * $n, 'two locks with a guard');
cmp_ok(2 * $n, '<', $locks / 5 + 12, 'a fifth of the table, and so much for what lapsed');
$sweeper->query_safe('ROLLBACK');
$node->safe_psql('postgres', 'CALL idem_maintain()');
is($node->safe_psql('postgres', q{SELECT count(*) FILTER (WHERE operation = 'a'), count(*), count(response) FROM idem_record}),
	'0|3100|0', 'all is done');

# What somebody may take over is looked at and let go of, however much there is.
$node->safe_psql('postgres', q{
	DO $$ BEGIN
		FOR i IN 1 .. 3000 LOOP
			PERFORM idem_claim('t', 'lapsed', i::text, lease => '1 us');
			IF i % 100 = 0 THEN
				COMMIT;
			END IF;
		END LOOP;
	END $$});
is(sqlstate($node, 'CALL idem_maintain()'), '00000', 'many lapsed commands do not fill the lock table');
is($node->safe_psql('postgres', q{SELECT count(*) FROM idem_record WHERE operation = 'lapsed' AND state = 'processing'}),
	3000, 'and stay as they are');

# It rests between its batches: seen, holding nothing, and cancelled at once.
$node->safe_psql('postgres', q{CALL fill('rest', 300)});
start_query($workers[0], 'CALL idem_maintain(batch => 20, effort => 0.01)');
wait_for($node, q{SELECT count(*) > 0 FROM pg_stat_activity a JOIN idem_progress p USING (pid)
		WHERE p.rows_done > 0 AND a.wait_event = 'Extension' AND a.backend_xid IS NULL AND a.backend_xmin IS NULL
		AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid AND l.locktype IN ('advisory', 'relation'))});
$node->safe_psql('postgres', 'SELECT pg_cancel_backend(pid) FROM idem_progress');
(undef, $messages) = answer($workers[0]);
like($messages, qr/canceling statement due to user request/, 'cancelled');

# Its commits wait for nothing, neither a flush nor a standby; one that moves a
# command to unknown does as any other.
$node->safe_psql('postgres', q{
	SELECT idem_define('once', max_attempts => 1);
	SELECT idem_claim('t', 'once', '1', lease => '1 us');
	ALTER SYSTEM SET synchronous_standby_names = 'nobody';
	SELECT pg_reload_conf()});
wait_for($node, q{SELECT current_setting('synchronous_standby_names') = 'nobody'});
start_query($workers[0], 'CALL idem_maintain(batch => 20)');
wait_for($node, q{SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'});
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'});
(undef, $messages) = answer($workers[0]);
like($messages, qr/canceling wait for synchronous replication/, 'that one waited');
$node->safe_psql('postgres', q{SET synchronous_commit = local; CALL fill('async', 100)});
start_query($workers[0], 'CALL idem_maintain(batch => 20)');
(undef, $messages) = answer($workers[0]);
like($messages, qr/NOTICE:  swept [1-9]\d*, purged 0, moved 0/, 'it did all');
unlike($messages, qr/WARNING|ERROR/, 'and waited for nobody');
$node->safe_psql('postgres', q{ALTER SYSTEM RESET synchronous_standby_names; SELECT pg_reload_conf()});
wait_for($node, q{SELECT current_setting('synchronous_standby_names') = ''});

# Somebody's old snapshot keeps what is dead from being removed: the batches do
# not walk over it again and again.
my $reader = session($node);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$node->safe_psql('postgres', q{CALL fill('old', 3000)});
# and some thousand lapsed ones, from before: each is read once
$node->safe_psql('postgres', q{SELECT count(idem_claim('t', 'free', n::text, lease => '1 us')) FROM generate_series(1, 200) AS n});
# what idle sessions have counted comes late otherwise
$_->quit for @workers;
$node->safe_psql('postgres', q{SELECT pg_stat_reset(); CALL idem_maintain(batch => 50, effort => 1)});
$reader->query_safe('COMMIT');
wait_for($node, q{SELECT idx_scan > 60 FROM pg_stat_user_indexes WHERE indexrelname = 'idem_record_expiring'});
cmp_ok($node->safe_psql('postgres', q{SELECT idx_tup_read FROM pg_stat_user_indexes
		WHERE indexrelname = 'idem_record_expiring'}), '<', 20000, 'each entry is read a few times at most');
cmp_ok($node->safe_psql('postgres', q{SELECT idx_tup_read FROM pg_stat_user_indexes
		WHERE indexrelname = 'idem_record_open'}), '<', 6000, 'nor over lapsed commands that may be taken over');

# The figures say the same; a crash has set them to zero.
is($node->safe_psql('postgres', q{SELECT operation, swept, purged FROM idem_stat
		WHERE operation IN ('a', 'b', 'old') ORDER BY operation}),
	'a|' . (20000 - $done) . "|20000\nb|3000|0\nold|3000|0", 'counted once each');

# A standby follows, and maintains nothing itself.
my $standby = Idem::new_standby('standby', $node);
is(sqlstate($standby, 'SELECT idem_sweep()'), '25006', 'no sweep on a standby');
is(sqlstate($standby, 'CALL idem_maintain()'), '25006', 'no maintenance either');
$node->safe_psql('postgres', q{CALL fill('c', 10); CALL idem_maintain()});
$node->wait_for_catchup($standby);
is($standby->safe_psql('postgres', q{SELECT outcome, resource FROM idem_replay('t', 'c', '1')}),
	'expired|1', 'a swept key answers there');
is($standby->safe_psql('postgres', q{SELECT outcome FROM idem_replay('t', 'a', '1')}),
	'absent', 'and a purged one');

done_testing();
