# Proves the figures of a preloaded library: each event is counted exactly
# once, in its own column, when it happens, whatever becomes of the
# transaction and however many sessions count at once; memory is bounded; and
# what reset, restart, crash, DROP DATABASE, DROP EXTENSION and a standby make
# of them.
use strict;
use warnings;

use Idem;
use IdemTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $operations = 40;
my $node = Idem::new_node('stat', streaming => 1,
	conf => "shared_preload_libraries = 'idempotency'
		idempotency.stat_operations = $operations
		restart_after_crash = on\n");
$node->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	CREATE FUNCTION handler(request jsonb) RETURNS json LANGUAGE sql AS
		$$ SELECT '1'::json $$});

# What was counted of an operation, apart from sums: name=value, in order.
sub figures
{
	my ($operation, $where, $database) = @_;

	return ($where || $node)->safe_psql($database || 'postgres', qq{
		SELECT string_agg(key || '=' || value, ' ' ORDER BY place)
		FROM idem_stat AS s,
			 json_each_text(row_to_json(s)) WITH ORDINALITY AS f (key, value, place)
		WHERE operation = '$operation' AND value <> '0' AND key NOT IN
			('operation', 'claims', 'intercepted', 'wait_time', 'takeovers', 'stats_reset')});
}

# Each event alone, in an operation of its own.
sub counts
{
	my ($name, $expected, $sql, $where) = @_;

	$sql =~ s/\bOP\b/'$name'/g;
	my ($stdout, $stderr);
	($where || $node)->psql('postgres', $sql, stdout => \$stdout,
		stderr => \$stderr, on_error_stop => 0);
	is(figures($name, $where), $expected, "counted: $name")
	  or diag($stderr);
}

is($node->safe_psql('postgres', 'SELECT count(*) FROM idem_stat'), 0,
	'nothing happened, no row');

counts('rollback', 'execute=2 completed=1', q{
	BEGIN; SELECT idem_complete(idem_claim('t', OP, 'k')); ROLLBACK;
	BEGIN; SAVEPOINT s; SELECT idem_claim('t', OP, 'k'); ROLLBACK TO s; COMMIT});
counts('repeated', 'execute=1 completed=1', q{
	SELECT idem_claim('t', OP, 'k', lease => '1h') AS ticket \gset
	SELECT idem_complete(:'ticket'::idem_ticket, '1');
	SELECT idem_complete(:'ticket'::idem_ticket, '1')});
counts('intents', 'execute=1 sent=4 dispatched=1 confirmed=1 rejected=1'
	. ' deferred=1 happened=1 absent=1 unclear=1', q{
	SELECT idem_claim('t', OP, 'k', lease => '1h') AS ticket \gset
	SELECT operation_id AS a FROM idem_intend(:'ticket', 'a', OP, send => true) \gset
	SELECT token FROM idem_dispatch(OP, 'w', 10, '1h') \gset
	SELECT idem_defer(:'a', :token, 'busy');
	SELECT idem_defer(:'a', :token, 'busy');
	SELECT idem_confirm(:'a', :token);
	SELECT state FROM idem_send(:'a', 'w', '1 us');
	SELECT token FROM idem_reconcile(OP, 'r', 1, '1h') \gset
	SELECT idem_settle(:'a', :token, 'unclear', '1');
	SELECT token FROM idem_reconcile(OP, 'r', 1, '1h') \gset
	SELECT idem_settle(:'a', :token, 'absent', '1');
	SELECT state FROM idem_send(:'a', 'w', '1 us');
	SELECT token FROM idem_reconcile(OP, 'r', 1, '1h') \gset
	SELECT idem_settle(:'a', :token, 'happened', '1');
	SELECT operation_id AS b FROM idem_intend(:'ticket', 'b', OP) \gset
	SELECT token FROM idem_send(:'b', 'w', '1h') \gset
	SELECT idem_confirm(:'b', :token);
	SELECT operation_id AS c FROM idem_intend(:'ticket', 'c', OP) \gset
	SELECT token FROM idem_send(:'c', 'w', '1h') \gset
	SELECT idem_reject(:'c', :token, 'no')});
counts('repeated otherwise', 'execute=1 completed=1', q{
	SELECT idem_claim('t', OP, 'k', lease => '1h') AS ticket \gset
	SELECT idem_complete(:'ticket'::idem_ticket, '1');
	SELECT idem_fail(:'ticket'::idem_ticket, '1')});
counts('replay', 'execute=1 replay=2 lookups=3 lookups_absent=1 completed=1', q{
	SELECT idem_replay('t', OP, 'k');
	SELECT idem_complete(idem_claim('t', OP, 'k'));
	SELECT idem_claim('t', OP, 'k') FROM generate_series(1, 2);
	SELECT idem_replay('t', OP, 'k') FROM generate_series(1, 2)});
counts('in progress', 'execute=2 in_progress=2', q{
	SELECT idem_claim('t', OP, 'leased', lease => '1h');
	SELECT idem_claim('t', OP, 'leased');
	BEGIN; SELECT idem_claim('t', OP, 'own'); SELECT idem_claim('t', OP, 'own')});
counts('mismatch', 'execute=1 mismatch=1 completed=1', q{
	SELECT idem_complete(idem_claim('t', OP, 'k', '1'));
	SELECT idem_claim('t', OP, 'k', '2')});
counts('expired', 'execute=1 expired=1 completed=1', q{
	SELECT idem_complete(idem_claim('t', OP, 'k', ttl => '1us'));
	SELECT idem_claim('t', OP, 'k')});
counts('cancelled', 'cancelled=1 cancellations=1', q{
	SELECT idem_cancel('t', OP, 'k', 'why') FROM generate_series(1, 2);
	SELECT idem_claim('t', OP, 'k')});
counts('fail', 'execute=1 failed=1', q{
	SELECT idem_fail(idem_claim('t', OP, 'k'))});
counts('release', 'execute=3 released=2', q{
	SELECT idem_release(idem_claim('t', OP, 'k', lease => '1h'));
	BEGIN; SELECT idem_release(idem_claim('t', OP, 'k')); COMMIT;
	BEGIN; SELECT idem_hold(idem_claim('t', OP, 'k')); ROLLBACK});
counts('heartbeat', 'execute=1 heartbeats=2', q{
	SELECT idem_claim('t', OP, 'k', lease => '1h') AS ticket \gset
	SELECT idem_heartbeat(:'ticket'::idem_ticket, '1h') FROM generate_series(1, 2)});
counts('takeover', 'execute=1 resume=1 completed=1 stale_tickets=1', q{
	SELECT idem_claim('t', OP, 'k', lease => '1us') AS ticket \gset
	SELECT idem_complete(idem_claim('t', OP, 'k', lease => '1h'));
	SELECT idem_complete(:'ticket'::idem_ticket)});
counts('stale', 'stale_tickets=3', q{
	SELECT idem_complete('t', OP, 'k', 5);
	SELECT idem_complete('t', OP, 'k', NULL::bigint);
	SELECT idem_hold('t', OP, 'k', 5)});
counts('batch', 'execute=3 replay=2 in_progress=1 completed=3', q{
	SELECT idem_complete_batch(array_agg(c)) FROM idem_claim_batch('t', OP, '{a,b,c,c}') AS c
	WHERE token IS NOT NULL;
	SELECT idem_claim_batch('t', OP, '{a,b}')});
counts('execute', 'execute=1 replay=1 completed=1', q{
	SELECT idem_execute('t', OP, 'k', '1', 'handler(jsonb)');
	SELECT idem_execute('t', OP, 'k', '1', 'handler(jsonb)')});
counts('refused', '', q{
	SELECT idem_claim('t', OP, '');
	SELECT idem_claim('t', OP, 'k', lease => '-1s');
	SET default_transaction_read_only = on;
	SELECT idem_claim('t', OP, 'k')});
counts('unknown', 'execute=1 unknown=1 became_unknown=1 resolved=1', q{
	SELECT idem_unknown(idem_claim('t', OP, 'k', lease => '1h'), 'why');
	SELECT idem_claim('t', OP, 'k');
	SELECT idem_resolve('t', OP, 'k', 'succeeded', 'seen') FROM generate_series(1, 2)});
counts('attempts', 'execute=1 unknown=2 became_unknown=1', q{
	SELECT idem_define(OP, max_attempts => 1);
	SELECT idem_claim('t', OP, 'k', lease => '1us');
	SELECT idem_claim('t', OP, 'k', lease => '1us') FROM generate_series(1, 2)});
counts('recover', 'execute=2 completed=1 recovered=1', q{
	SELECT idem_claim('t', OP, 'k', lease => '1us');
	SELECT idem_complete(r) FROM idem_recover('w', 10000, '1h') AS r WHERE operation = OP;
	SELECT idem_claim('t', OP, 'live', lease => '1h');
	SELECT idem_recover('w', 10000, '1h')});

is($node->safe_psql('postgres', q{
		SELECT claims, intercepted, takeovers FROM idem_stat WHERE operation = 'replay';
		SELECT claims, intercepted, takeovers FROM idem_stat WHERE operation = 'mismatch';
		SELECT claims, intercepted, takeovers FROM idem_stat WHERE operation = 'takeover';
		SELECT claims, intercepted, takeovers FROM idem_stat WHERE operation = 'recover'}),
	"3|2|0\n2|0|0\n2|0|1\n2|0|1", 'the sums');

# A wait, and how long: at least as long as the owner kept the address.
my ($owner, $waiter) = (session($node), session($node));
$owner->query_safe(q{BEGIN; SELECT idem_claim('t', 'wait', 'k')});
start_query($waiter, q{BEGIN; SELECT idem_claim('t', 'wait', 'k', wait => '1min')});
wait_for($node, q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted});
is(figures('wait'), 'execute=1 waits=1', 'a wait counts from its begin');
$owner->query_safe(q{SELECT pg_sleep(0.05); ROLLBACK});
answer($waiter);
$waiter->query_safe('ROLLBACK');
is(figures('wait'), 'execute=2 waits=1', 'one wait, whoever owns in the end');
is($node->safe_psql('postgres', q{
		SELECT wait_time BETWEEN 50 AND 60000, pg_typeof(wait_time)
		FROM idem_stat WHERE operation = 'wait'}),
	't|double precision', 'its time, in milliseconds');
$node->safe_psql('postgres', q{
	SELECT idem_claim('t', 'nap', 'k', lease => '1h');
	SELECT idem_claim('t', 'nap', 'k', wait => '20ms')});
is(figures('nap'), 'execute=1 in_progress=1 waits=1', 'a wait for a lease');
is($node->safe_psql('postgres', q{
		SELECT wait_time BETWEEN 20 AND 60000 FROM idem_stat WHERE operation = 'nap'}),
	't', 'and its time');
# For a guard it is the same, also where a batch puts guards off.
for ([ 'guard', q{'b', guard => 'g'} ], [ 'guards', q{'{b}', guards => '{g}'} ])
{
	my ($operation, $arguments) = @$_;
	my $call = $operation eq 'guards' ? 'idem_claim_batch' : 'idem_claim';

	$owner->query_safe("BEGIN; SELECT idem_claim('t', '$operation', 'a', guard => 'g')");
	start_query($waiter,
		"BEGIN; SELECT $call('t', '$operation', $arguments, wait => '1min')");
	wait_for($node, q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted});
	is(figures($operation), 'execute=1 waits=1', "$operation: a wait for a guard");
	$owner->query_safe(q{SELECT pg_sleep(0.05); ROLLBACK});
	answer($waiter);
	$waiter->query_safe('ROLLBACK');
	is($node->safe_psql('postgres', qq{
			SELECT waits, wait_time BETWEEN 50 AND 60000
			FROM idem_stat WHERE operation = '$operation'}),
		'1|t', "$operation: one wait, and its time");
}
# A batch that waited for an address and only then for its guard's turn.
$owner->query_safe(q{BEGIN; SELECT idem_claim('t', 'late guard', 'b')});
start_query($waiter, q{BEGIN;
	SELECT idem_claim_batch('t', 'late guard', '{b}', guards => '{g}', wait => '1min')});
wait_for($node, q{SELECT count(*) = 1 FROM pg_locks WHERE NOT granted});
$owner->query_safe(q{SELECT pg_sleep(0.05); ROLLBACK});
answer($waiter);
$waiter->query_safe('ROLLBACK');
is($node->safe_psql('postgres', q{
		SELECT waits, wait_time BETWEEN 50 AND 60000
		FROM idem_stat WHERE operation = 'late guard'}),
	'1|t', 'a claim whose guard comes later has its wait counted');
is($node->safe_psql('postgres', q{
		SELECT string_agg(operation, ',' ORDER BY operation) FROM idem_stat
		WHERE wait_time > 0}), 'guard,guards,late guard,nap,wait', 'nobody else waited');

# Many at once: nothing is lost, also while their entry is being made.
my $script = $node->basedir . '/claims.sql';
append_to_file($script, q{
	BEGIN;
	SELECT idem_claim('t', 'many', 'k' || :client_id);
	ROLLBACK;
	SELECT idem_replay('t', 'many ' || :client_id % 2, 'k');
});
$node->command_ok([ 'pgbench', '-n', '-c', 8, '-j', 2, '-t', 250, '-f', $script,
		'-p', $node->port, '-h', $node->host, 'postgres' ], 'eight sessions');
is(figures('many'), 'execute=2000', 'eight sessions: all claims are counted');
is(figures("many $_"), 'lookups=1000 lookups_absent=1000',
	'eight sessions: all questions are counted') for 0, 1;

append_to_file($script = $node->basedir . '/questions.sql', q{
	SELECT count(idem_replay('t', 'storm', 'k' || i)) FROM generate_series(1, 5000) AS i;
});
$node->command_ok([ 'pgbench', '-n', '-c', 8, '-j', 2, '-t', 4, '-f', $script,
		'-p', $node->port, '-h', $node->host, 'postgres' ],
	'eight sessions that do nothing else');
is(figures('storm'), 'lookups=160000 lookups_absent=160000',
	'eight sessions that do nothing else: nothing is lost');

# The longest names, of 512 bytes, which differ in their last character alone.
my ($long, $longer) = map { "repeat(U&'\\+01F600', 127) || U&'\\+01F60$_'" } 1, 2;
for my $times (1, 2)
{
	$node->safe_psql('postgres', "SELECT idem_replay(repeat(U&'\\+01F600', 128), $long, repeat(U&'\\+01F600', 255))
		FROM generate_series(1, 3); SELECT idem_replay('t', $longer, 'k')");
	is($node->safe_psql('postgres', "
			SELECT octet_length(operation), length(operation), lookups FROM idem_stat
			WHERE operation IN ($long, $longer) ORDER BY lookups"),
		"512|128|$times\n512|128|" . 3 * $times, 'each of the longest names has its own');
}
$node->safe_psql('postgres', "SELECT idem_stat_reset($long)");
is($node->safe_psql('postgres', "SELECT lookups FROM idem_stat WHERE operation IN ($long, $longer) ORDER BY lookups"),
	"0\n2", 'and is reset by its name');

# Reset: one, all; nobody has to ask again for where to count.
my $session = session($node);
$session->query_safe(q{SELECT idem_replay('t', 'many', 'k')});
my $before = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
$node->safe_psql('postgres', q{
	SELECT idem_stat_reset('no such');
	BEGIN; SELECT idem_stat_reset('many'); ROLLBACK});
is(figures('many'), '', 'reset of one');
is(figures('many 0'), 'lookups=1000 lookups_absent=1000', 'and of no other');
is($node->safe_psql('postgres', qq{
		SELECT count(*) FILTER (WHERE stats_reset > '$before'),
			   count(*) FILTER (WHERE operation = 'many' AND stats_reset > '$before')
		FROM idem_stat}), '1|1', 'stats_reset tells when');
$session->query_safe(q{SELECT idem_replay('t', 'many', 'k')});
is(figures('many'), 'lookups=1 lookups_absent=1', 'counted on from zero');
$node->safe_psql('postgres', 'SELECT idem_stat_reset()');
is($node->safe_psql('postgres', q{
		SELECT sum(claims + lookups + completed + stale_tickets), max(wait_time),
			   count(*) > 20 FROM idem_stat}), '0|0|t', 'reset of all');

# Another database.
$node->safe_psql('postgres', 'CREATE DATABASE other');
$node->safe_psql('other', q{
	CREATE EXTENSION idempotency;
	SELECT idem_replay('t', 'many', 'k') FROM generate_series(1, 3)});
is(figures('many', $node, 'other'), 'lookups=3 lookups_absent=3',
	'another database counts for itself');
is(figures('many'), '', 'and here nothing is seen of it');
$node->safe_psql('other', 'SELECT idem_stat_reset()');
$session->query_safe(q{SELECT idem_replay('t', 'many', 'k')});
is(figures('many'), 'lookups=1 lookups_absent=1', 'nor is it reset from there');

# No room: counted together.  Many make entries until it is full, then one.
$node->safe_psql('postgres', q{SELECT idem_replay('t', '(others)', 'k')});
is(figures('(others)'), 'lookups=1 lookups_absent=1',
	'an operation of that name is counted with the others');
append_to_file($script = $node->basedir . '/more.sql', q{
	SELECT idem_replay('t', 'more ' || :client_id || ' ' || i, 'k')
	FROM generate_series(1, 10) AS i;
});
$node->command_ok([ 'pgbench', '-n', '-c', 5, '-j', 2, '-t', 8, '-f', $script,
		'-p', $node->port, '-h', $node->host, 'postgres' ], 'all want room');
my $ask = q{SELECT idem_replay('t', 'more ' || i, 'k') FROM generate_series(1, 2000) AS i};
my $memory = q{SELECT sum(total_bytes) FROM pg_backend_memory_contexts
	WHERE name = 'idempotency figures'};
$session->query_safe($ask);
my $used = $session->query_safe($memory);
$session->query_safe($ask);
is($session->query_safe($memory), $used, 'a session needs no more memory');
cmp_ok($used, '<', 2000 * $operations, "which is little: $used bytes");
is($node->safe_psql('postgres', 'SELECT count(*) FROM idem_stat')
	  + $node->safe_psql('other', q{SELECT count(*) FROM idem_stat WHERE operation <> '(others)'}),
	$operations + 1, 'no more entries than set');
my $found = $node->safe_psql('postgres',
	q{SELECT sum(lookups) FROM idem_stat WHERE operation LIKE 'more %'});
my $others = 4000 + 400 + 1 - $found;
is(figures('(others)'), "lookups=$others lookups_absent=$others",
	'the others are counted, together');
is($node->safe_psql('postgres', q{
		SELECT sum(size) < 80000 FROM pg_shmem_allocations
		WHERE name IN ('idempotency figures', 'idempotency operations')}),
	't', 'shared memory is as announced');
$session->query_safe(q{SELECT idem_stat_reset('(others)')});
is(figures('(others)'), '', 'reset of the others');

# A dropped database gives its room back to whoever needs it.
$node->safe_psql('postgres', 'DROP DATABASE other');
$node->safe_psql('postgres', q{SELECT idem_replay('t', 'newcomer', 'k')});
is(figures('newcomer'), 'lookups=1 lookups_absent=1', 'room of a dropped database');
$session->query_safe(q{SELECT idem_replay('t', 'newcomer', 'k')});
is(figures('newcomer'), 'lookups=2 lookups_absent=2',
	'found by a session that had met a full table');

# The extension comes and goes; the figures stay.
$session->query_safe(q{
	DROP EXTENSION idempotency;
	CREATE EXTENSION idempotency;
	SELECT idem_replay('t', 'newcomer', 'k')});
is(figures('newcomer'), 'lookups=3 lookups_absent=3', 'DROP and CREATE EXTENSION');

# A standby counts for itself, and can be reset.
my $standby = Idem::new_standby('standby', $node);
counts('standby', 'lookups=2 lookups_absent=2', q{
	SELECT idem_replay('t', OP, 'k') FROM generate_series(1, 2)}, $standby);
is(figures('standby'), '', 'the primary knows nothing of it');
$standby->safe_psql('postgres', 'SELECT idem_stat_reset()');
is(figures('standby', $standby), '', 'reset on a standby');
is($standby->safe_psql('postgres', q{
		SELECT processing, durability FROM idem_overview WHERE operation IS NULL}),
	'0|local', 'idem_overview on a standby');
$standby->stop;

# A crash and a restart begin at zero.
$_->quit for $owner, $waiter;
kill 'KILL', $session->query_safe('SELECT pg_backend_pid()');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM idem_stat'),
	'a crash');
$session->{run}->finish;
$node->safe_psql('postgres', q{SELECT idem_replay('t', 'again', 'k')});
is(figures('again'), 'lookups=1 lookups_absent=1', 'counted after it');
$node->restart;
is($node->safe_psql('postgres', 'SELECT count(*) FROM idem_stat'), 0, 'a restart');

done_testing();
