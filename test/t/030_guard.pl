# Proves that of all commands with one guard at most one takes effect: across
# a crash and in prepared transactions; while the record that holds the guard
# is moved about by its owner; and while clients that succeed, fail, release
# and roll back fight for guards whose index is being rebuilt.
use strict;
use warnings;

use Idem;
use IdemTest;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;

my $seconds = 6;
my $node = Idem::new_node('guard', conf => 'max_prepared_transactions = 10');
my $folder = PostgreSQL::Test::Utils::tempdir();
my $scripts = 0;
$node->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	CREATE TABLE orders (guard text)});

sub other
{
	my ($guard, $options) = @_;

	return $node->safe_psql('postgres', "
		BEGIN;
		SELECT outcome, duplicate_of
		FROM idem_claim('t', 'o', 'other', guard => '$guard'$options);
		ROLLBACK");
}

# Starts pgbench with a script for some clients.
sub load
{
	my ($clients, $script) = @_;
	my %load = (output => '', messages => '');
	my $file = "$folder/script" . ++$scripts;

	append_to_file($file, $script);
	$load{run} = IPC::Run::start(
		[ 'pgbench', '-n', '-c', $clients, '-T', $seconds, '-f', $file,
			$node->connstr('postgres') ],
		'>', \$load{output}, '2>', \$load{messages});
	return \%load;
}

sub finished
{
	my ($load, $what) = @_;

	ok($load->{run}->finish, $what) or diag($load->{messages});
	note($load->{output});
}

# Prepared transactions and crashes.
for my $key (qw(committed rolled_back))
{
	is(sqlstate($node, "
		BEGIN;
		SELECT idem_complete(idem_claim('t', 'o', '$key', guard => '$key', ttl => '1 us'), '1');
		PREPARE TRANSACTION '$key'"), '00000', "$key: prepared");
}
$node->safe_psql('postgres', q{
	SELECT idem_claim('t', 'o', 'leased', guard => 'leased', lease => '1 hour')});
my $open = session($node);
$open->query_safe(q{
	BEGIN;
	SELECT idem_claim('t', 'o', 'open', guard => 'open')});
for my $when ('before', 'after')
{
	crash($node, $open) if $when eq 'after';
	for my $key (qw(committed rolled_back))
	{
		is(other($key, ''), 'in_progress|', "$when the crash, $key: held");
		is(other($key, ", wait => '10 ms'"), 'in_progress|',
			"$when the crash, $key: waiting does not help");
	}
	is(other('leased', ''), 'duplicate|leased', "$when the crash, leased: held");
	is($node->safe_psql('postgres', q{SET lock_timeout = '10 s'; CALL idem_maintain();
			SELECT swept, purged FROM idem_sweep()}),
		'0|0', "$when the crash: maintenance leaves what is prepared, and waits for none");
	is(other('open', ''),
		$when eq 'before' ? 'in_progress|' : 'execute|',
		"$when the crash, open");
}
my ($status, $output, $messages) = $node->psql('postgres', q{
	SET lock_timeout = '10 ms';
	SELECT idem_claim('t', 'o', 'other', guard => 'committed', wait => '1 hour')});
like($messages, qr/lock timeout.*locking tenant "t", operation "o", guard "committed"/s,
	'an error of the server names the guard');
my $waiter = session($node);
start_query($waiter, q{
	SELECT outcome, duplicate_of
	FROM idem_claim('t', 'o', 'other', guard => 'committed', wait => '1 hour')});
wait_for($node, q{SELECT count(*) = 1 FROM pg_stat_activity
	WHERE wait_event = 'advisory'});
$node->safe_psql('postgres', q{COMMIT PREPARED 'committed'});
is(answer($waiter), 'duplicate|committed', 'committed: duplicate');
$waiter->quit;
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'rolled_back'});
is($node->safe_psql('postgres', q{SELECT swept, purged FROM idem_sweep()}), '1|0',
	'committed: it has expired, and is swept');
is(other('committed', ''), 'duplicate|committed', 'and keeps its guard');
is(other('rolled_back', ''), 'execute|', 'rolled back: execute');

# The holder's row moves with each heartbeat: by an index on what changes.
# Who looks for the guard must never miss it.
$node->safe_psql('postgres', q{
	CREATE INDEX moving ON idem_record (lease_until);
	CREATE TABLE holder AS SELECT t AS ticket
		FROM idem_claim('t', 'o', 'holder', guard => 'held', lease => '1 hour') t;
	CREATE FUNCTION look(key text) RETURNS void LANGUAGE plpgsql AS $$
	DECLARE
		t idem_ticket := idem_claim('t', 'o', key, guard => 'held');
	BEGIN
		IF t.outcome NOT IN ('duplicate', 'in_progress') THEN
			RAISE '% of a guard that is held', t.outcome;
		END IF;
	END $$});
my @loads = (
	load(1, q{SELECT idem_heartbeat(ticket, '1 hour') FROM holder;}),
	load(2, q{SELECT look('looker' || :client_id);}));
finished($_, 'the guard of a moving record is found') for @loads;
$node->safe_psql('postgres', 'DROP INDEX moving');

# Guards that many fight for.
$node->safe_psql('postgres', q{
	CREATE PROCEDURE fight(n int, key int, what float, leased bool) LANGUAGE plpgsql AS $$
	DECLARE
		t idem_ticket := idem_claim('t', 'fight', n || '-' || key, guard => n::text,
			wait => CASE WHEN key > 5 THEN interval '1 min' END,
			lease => CASE WHEN leased THEN interval '1 min' END);
	BEGIN
		IF leased THEN
			COMMIT;
		END IF;
		IF t.token IS NULL THEN
			IF t.outcome = 'duplicate' AND t.duplicate_of = t.key THEN
				RAISE '% is a duplicate of itself', t.key;
			END IF;
		ELSIF what < 0.2 THEN
			PERFORM idem_release(t);
		ELSIF what < 0.4 THEN
			PERFORM idem_fail(t);
		ELSIF what < 0.5 AND NOT leased THEN
			INSERT INTO orders VALUES (n);
			ROLLBACK;
		ELSE
			INSERT INTO orders VALUES (n);
			PERFORM idem_complete(t, to_json(n));
		END IF;
	END $$});
my $fight = load(3, q{
\set n random(1, 700)
\set key random(1, 10)
\set what random(0, 1000) / 1000.0
\set leased random(0, 1)
CALL fight(:n, :key, :what, :leased::int::bool);
});
my $session = session($node);
my $rebuilt = 0;
while ($fight->{run}->pumpable)
{
	$session->query_safe('REINDEX INDEX CONCURRENTLY idem_record_guard');
	$session->query_safe('VACUUM idem_record');
	$rebuilt++;
	$fight->{run}->pump_nb;
}
finished($fight, 'no call of those who fight fails');
$session->quit;
cmp_ok($rebuilt, '>', 5, 'the index was rebuilt meanwhile');
is($node->safe_psql('postgres', q{
		SELECT count(*) > 300, count(*) - count(DISTINCT guard) FROM orders}),
	't|0', 'each guard has one order');
is($node->safe_psql('postgres', q{
		SELECT count(*) FROM
			(SELECT guard FROM idem_record
			 WHERE operation = 'fight' AND state = 'succeeded') r
			FULL JOIN orders o ON o.guard = r.guard
		WHERE o.guard IS NULL OR r.guard IS NULL}),
	0, 'and is that of a command that succeeded');
is($node->safe_psql('postgres', q{
		SELECT count(*) FROM orders o,
			idem_claim('t', 'fight', 'new ' || o.guard, guard => o.guard) c
		WHERE c.outcome <> 'duplicate' OR c.response::text <> o.guard}),
	0, 'the index finds them all');
is($node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}),
	0, 'no lock is left');

done_testing();
