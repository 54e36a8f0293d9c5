# Proves that a ticket is all that a leased command needs: each verb works from
# another session, with DISCARD ALL between any two calls, and that nothing of
# the extension is left in a session after a commit (case 5).
use strict;
use warnings;

use Idem;
use IdemTest;
use Test::More;

my $node = Idem::new_node('pooler');
$node->safe_psql('postgres', q{CREATE EXTENSION idempotency});

my @sessions = (session($node), session($node));
my @pids = map { $_->query_safe('SELECT pg_backend_pid()') } @sessions;

# What a session has that could outlive a transaction.  The library is loaded
# first: its settings appear with it.
my $settings = q{SELECT md5(string_agg(name || setting || source, '|'
	ORDER BY name)) FROM pg_settings WHERE name NOT LIKE 'plpgsql.%'};
$_->query_safe(q{SELECT idem_fingerprint('1')}) for @sessions;
my @settings = map { $_->query_safe($settings) } @sessions;

sub nothing_is_left
{
	my ($what) = @_;
	my $pids = join ', ', @pids;

	is($node->safe_psql('postgres', "
		SELECT 'lock', locktype, mode FROM pg_locks WHERE pid IN ($pids)
		UNION ALL
		SELECT 'temporary', relname, relkind::text FROM pg_class
		WHERE relpersistence = 't'"), '', "$what: no lock, nothing temporary");
	is_deeply([ map { $_->query_safe($settings) } @sessions ],
		\@settings, "$what: no setting is changed");
}

# The next call goes to the other session, both washed in between.
my $turn = 0;

sub call
{
	my ($sql) = @_;
	my $result = $sessions[ $turn++ % 2 ]->query_safe($sql);

	$_->query_safe('DISCARD ALL') for @sessions;
	return $result;
}

# With the ticket as a value, and with its parts.
for my $form ('ticket', 'parts')
{
	my $key;
	my $ticket;
	my $verb = sub {
		my ($name, @arguments) = @_;
		my @first = ("'$ticket'::idem_ticket");

		@first = ("'t'", "'o'", "'$key'",
			$node->safe_psql('postgres',
				"SELECT ('$ticket'::idem_ticket).token"))
		  if $form eq 'parts';
		return call("SELECT $name(" . join(', ', @first, @arguments) . ')');
	};

	for my $end (qw(complete fail release))
	{
		$key = "$form $end";
		$ticket = call("SELECT idem_claim('t', 'o', '$key', '1', lease => '1 minute')");
		like($ticket, qr/^\(execute,/, "$key: claimed");
		$verb->('idem_heartbeat', q{'2 hours'});
		is(call("SELECT lease_until > clock_timestamp() + interval '1 hour'
			FROM idem_record WHERE key = '$key'"), 't', "$key: heartbeat");
		$verb->('idem_hold');
		$verb->("idem_$end", $end eq 'release' ? () : q{'"answer"'});
		is(call("SELECT state FROM idem_record WHERE key = '$key'"),
			{ complete => 'succeeded', fail => 'failed', release => 'released' }
			->{$end}, "$key: done");
		$verb->("idem_$end", $end eq 'release' ? () : q{'"answer"'});
		nothing_is_left($key);
	}
}

is(call(q{SELECT outcome, response
		FROM idem_claim('t', 'o', 'ticket complete', '1')}),
	'replay|"answer"', 'the other session has the answer');

# Steps and intents, the same; each result is there for the next session.
my $ticket = call(q{SELECT idem_claim('t', 'o', 'story', lease => '1 us')});
$ticket = call(q{SELECT idem_claim('t', 'o', 'story', lease => '1 hour')});
like($ticket, qr/^\(resume,/, 'story: taken over');
call(qq{SELECT idem_step_done('$ticket', 'reserve', '"shelf 7"', '1')});
is(call(qq{SELECT * FROM idem_step('$ticket', 'reserve', '1')}),
	't|"shelf 7"', 'story: the step is done');
my $id = call(qq{SELECT operation_id FROM idem_intend('$ticket', 'pay', 'bank', send => true)});
my $sent = call(q{SELECT token FROM idem_dispatch('bank', 'w', 1, '1 us')});
$sent = call(q{SELECT token FROM idem_reconcile('bank', 'w', 1, '1 hour')});
call("SELECT idem_settle('$id', $sent, 'absent', '1')");
$sent = call("SELECT token FROM idem_send('$id', 'w', '1 hour')");
call("SELECT idem_defer('$id', $sent, 'busy')");
call("SELECT idem_retry('$id', 'now')");
$sent = call("SELECT token FROM idem_send('$id', 'w', '1 hour')");
call("SELECT idem_confirm('$id', $sent, '\"paid\"')");
is(call(qq{SELECT state, response
		FROM idem_intend('$ticket', 'pay', 'bank', send => true)}),
	'confirmed|"paid"', 'story: the intent is settled');
call(qq{SELECT idem_unknown('$ticket', 'connection lost')});
call(q{SELECT idem_resolve('t', 'o', 'story', 'released', 'nothing is left to do')});
is(call(q{SELECT outcome, attempt FROM idem_recover('w', 1, '1 hour')}),
	'resume|3', 'story: recovered');
nothing_is_left('story');

# Whatever changes something within a transaction.
for (
	[ 'atomic', q{SELECT idem_complete(idem_claim('t', 'o', 'atomic'))} ],
	[ 'released', q{SELECT idem_release(idem_claim('t', 'o', 'released'))} ],
	[ 'replay', q{SELECT idem_replay('t', 'o', 'atomic')} ],
	[ 'waited', q{SELECT idem_claim('t', 'o', 'lease', lease => '1 minute');
		SELECT idem_claim('t', 'o', 'lease', wait => '20 ms')} ],
	[ 'savepoint', q{BEGIN; SAVEPOINT s;
		SELECT idem_claim('t', 'o', 'savepoint'); ROLLBACK TO s; COMMIT} ],
	[ 'rolled back', q{BEGIN; SELECT idem_claim('t', 'o', 'rolled back');
		ROLLBACK} ],
	[ 'batch', q{SELECT idem_complete_batch(array_agg(b)) FROM
		idem_claim_batch('t', 'o', '{b1,b2}') AS b} ],
	[ 'defined', q{SELECT idem_define('other', ttl => '1 hour')} ])
{
	my ($what, $sql) = @$_;

	$sessions[0]->query_safe($sql);
	nothing_is_left($what);
}

# A wait that really has to queue: one that ends with the owner, one that ends
# in vain, and one that ends in an error.
$sessions[1]->query_safe(q{BEGIN; SELECT idem_claim('t', 'o', 'ended')});
start_query($sessions[0], q{SELECT outcome
	FROM idem_claim('t', 'o', 'ended', wait => '1 minute', lease => '1 minute')});
wait_for($node, "SELECT $pids[1] = ANY (pg_blocking_pids($pids[0]))");
$sessions[1]->query_safe('ROLLBACK');
is(answer($sessions[0]), 'execute', 'waited for the owner');
nothing_is_left('ended');
$sessions[1]->query_safe(q{BEGIN; SELECT idem_claim('t', 'o', 'queue')});
is($sessions[0]->query_safe(
		q{SELECT outcome FROM idem_claim('t', 'o', 'queue', wait => '50 ms')}),
	'in_progress', 'waited in vain');
is(sqlstate($sessions[0], q{BEGIN; SET LOCAL lock_timeout = '10 ms';
		SELECT idem_claim('t', 'o', 'queue', wait => '1 minute')}),
	'55P03', 'the shorter lock_timeout of the session wins');
$_->query_safe('ROLLBACK') for @sessions;
nothing_is_left('queue');

is(sqlstate($sessions[0], q{SELECT idem_claim('t', 'o', 'unfinished')}),
	'ID001', 'a commit that is refused');
nothing_is_left('unfinished');

$_->quit for @sessions;
done_testing();
