# Proves that kill -9, of backends or of the whole server, between any two
# calls of a command with a step and an intent loses and repeats nothing: a
# step is done exactly if its own writes are there, what was sent is unknown
# until somebody has asked, and in the end each effect has happened once.
use strict;
use warnings;

use Idem;
use IdemTest;
use Test::More;

# restart_after_crash: the death of a backend restarts the server by itself
my $node = Idem::new_node('steps', conf => 'restart_after_crash = on');

# "calls" stands for another system: written in transactions of its own, under
# the operation id that it was given, as often as it was called.
$node->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	CREATE TABLE effects (key text);
	CREATE TABLE calls (id uuid);

	-- What any worker does that has the command.
	CREATE PROCEDURE work(ticket idem_ticket) LANGUAGE plpgsql AS $$
	DECLARE
		intent idem_intent;
	BEGIN
		IF NOT (idem_step(ticket, 'write')).done THEN
			INSERT INTO effects VALUES (ticket.key);
			PERFORM idem_step_done(ticket, 'write');
		END IF;
		COMMIT;
		intent := idem_intend(ticket, 'call', 'other system');
		COMMIT;
		IF intent.state <> 'confirmed' THEN
			intent := idem_send(intent.operation_id, 'work', '1 hour');
			COMMIT;
			INSERT INTO calls VALUES (intent.operation_id);
			COMMIT;
			PERFORM idem_confirm(intent.operation_id, intent.token);
		END IF;
		PERFORM idem_complete(ticket, '"done"');
	END $$});

# Steps of a command, and what there is to see once its session was killed
# after each: the command, its effects, its steps, its intent, the calls.
my @points = (
	'claim' => "SELECT token, t::text AS ticket FROM idem_claim('t', 'o', :'key', lease => '1 hour') t \\gset",
	'processing|0|0||0',
	'write' => "BEGIN; INSERT INTO effects VALUES (:'key')",
	'processing|0|0||0',
	'step_done' => "SELECT idem_step_done(:'ticket', 'write')",
	'processing|0|0||0',
	'commit of the step' => 'COMMIT',
	'processing|1|1||0',
	'intend' => "BEGIN; SELECT operation_id AS id FROM idem_intend(:'ticket', 'call', 'other system') \\gset",
	'processing|1|1||0',
	'commit of the intent' => 'COMMIT',
	'processing|1|1|pending|0',
	'send' => "BEGIN; SELECT token AS sent FROM idem_send(:'id', 'first', '1 us') \\gset",
	'processing|1|1|pending|0',
	'commit of the sending' => 'COMMIT',
	'processing|1|1|in_flight|0',
	'call' => "INSERT INTO calls VALUES (:'id')",
	'processing|1|1|in_flight|1',
	'confirm' => "BEGIN; SELECT idem_confirm(:'id', :sent)",
	'processing|1|1|in_flight|1',
	'commit of the confirmation' => 'COMMIT',
	'processing|1|1|confirmed|1',
	'complete' => "BEGIN; SELECT idem_complete(:'ticket'::idem_ticket, '\"done\"')",
	'processing|1|1|confirmed|1',
	'commit of the completion' => 'COMMIT',
	'succeeded|1|1|confirmed|1');
my $npoints = @points / 3;

# Opens a session for each point, to be killed when it has got there.
sub sessions_at_every_point
{
	my ($round) = @_;
	my @sessions;

	for my $last (0 .. $npoints - 1)
	{
		my $key = "$round, after $points[ 3 * $last ]";
		my $session = session($node);
		$session->query_safe("\\set key '$key'");
		$session->query_safe($points[ 3 * $_ + 1 ]) for 0 .. $last;
		push @sessions,
		  {
			key => $key,
			session => $session,
			seen => $points[ 3 * $last + 2 ],
			pid => $session->query_safe('SELECT pg_backend_pid()'),
			token => $session->query_safe('\echo :token')
		  };
	}
	return @sessions;
}

sub sql
{
	return $node->safe_psql('postgres', @_);
}

sub seen
{
	my ($key) = @_;

	return sql("SELECT r.state, (SELECT count(*) FROM effects e WHERE e.key = r.key),
			(SELECT count(*) FROM idem_step s WHERE s.key = r.key),
			(SELECT i.state FROM idem_intent i WHERE i.key = r.key),
			(SELECT count(*) FROM calls
			 WHERE id = idem_operation_id('t', 'o', r.key, 'call'))
		FROM idem_record r WHERE key = '$key'");
}

for my $round ('backends', 'server')
{
	my @sessions = sessions_at_every_point($round);
	my @psqls = map { $_->{session} } @sessions;

	if ($round eq 'backends')
	{
		kill_backends($node, [ map { $_->{pid} } @sessions ], @psqls);
	}
	else
	{
		crash($node, @psqls);
	}

	for (@sessions)
	{
		is(seen($_->{key}), $_->{seen}, $_->{key});

		# no need to wait for the lease, shortened by the token alone
		sql("SELECT idem_heartbeat('t', 'o', '$_->{key}', $_->{token}, '1 us')")
		  if $_->{seen} =~ /^processing/;
	}

	# Recovery: what may have been called is not run again.
	is(sql(q{SELECT count(*) FROM idem_recover('recoverer', 100, '1 us')
			WHERE outcome = 'resume'}), $npoints - 4,
		"$round: what has no open question is recovered");
	is(sql(q{SELECT string_agg(split_part(key, ' after ', 2), ', ' ORDER BY created_at)
			FROM idem_record WHERE state = 'unknown'}),
		'commit of the sending, call, confirm',
		"$round: what may have been called is unknown");

	# Reconciliation: the other system is asked.
	is(sql(q{SELECT i.state, count(s.*) FROM idem_reconcile('other system', 'r', 100, '1 hour') i,
			idem_settle(operation_id, token, CASE WHEN EXISTS (SELECT FROM calls
				WHERE id = operation_id) THEN 'happened' ELSE 'absent' END, '"asked"') s
			GROUP BY 1}), 'unknown|3', "$round: it is asked about");
	is(sql(q{SELECT count(*) FROM idem_record WHERE state = 'unknown'}), 0,
		"$round: then nothing is unknown");

	# Anybody goes on.
	my $keys = sql(q{SELECT key FROM idem_record WHERE state <> 'succeeded' ORDER BY created_at});
	for (split /\n/, $keys)
	{
		sql("SELECT t::text AS ticket
				FROM idem_claim('t', 'o', '$_', lease => '1 hour') t \\gset
			CALL work(:'ticket')");
	}
	is(seen($_->{key}), 'succeeded|1|1|confirmed|1', "$_->{key}: in the end")
	  for @sessions;
}

my $keys = 2 * $npoints;
is(sql('SELECT count(*), count(DISTINCT key) FROM effects'),
	"$keys|$keys", 'every effect has happened once');
is(sql('SELECT count(*), count(DISTINCT id) FROM calls'),
	"$keys|$keys", 'every call was made once');
is(sql('SELECT count(*) FROM idem_stuck'), 0, 'nothing is stuck');

done_testing();
