# Proves that kill -9, of backends or of the whole server, between any two
# steps of a command leaves nothing half done: what was not committed runs
# again, what was committed is replayed, and the orders agree.
use strict;
use warnings;

use Idem;
use IdemTest;
use Test::More;

# restart_after_crash: the death of a backend restarts the server by itself
my $node = Idem::new_node('kill', conf => 'restart_after_crash = on');
$node->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	CREATE TABLE orders (key text);
	CREATE FUNCTION insert_order(request jsonb) RETURNS json
	LANGUAGE plpgsql AS $$
	BEGIN
		INSERT INTO orders VALUES (request #>> '{}');
		PERFORM pg_advisory_lock(1);
		RETURN '"done"';
	END $$});

# Steps of a command; after each of them a session is killed.  A leased command
# has a second transaction.
my @atomic = (
	claim => "BEGIN; SELECT token FROM idem_claim('t', 'o', :'key', :'request')\n\\gset",
	write => "INSERT INTO orders VALUES (:'key')",
	complete => "SELECT idem_complete('t', 'o', :'key', :token, '\"done\"')",
	commit => 'COMMIT');
my @leased = (
	'claim' => "BEGIN; SELECT token FROM idem_claim('t', 'o', :'key', :'request', lease => '1 hour')\n\\gset",
	'commit of the claim' => 'COMMIT',
	@atomic[ 2 .. $#atomic ]);
$leased[5] = "BEGIN; $leased[5]";

# Opens a session for each point, killed when it has got there.
sub sessions_at_every_point
{
	my ($round, $kind, @steps) = @_;
	my @sessions;

	for (my $last = 0; $last < @steps; $last += 2)
	{
		my $key = "$round, $kind, after $steps[$last]";
		my $session = session($node);
		$session->query_safe("\\set key '$key'\n\\set request '\"$key\"'");
		$session->query_safe($steps[ 2 * $_ + 1 ]) for 0 .. $last / 2;
		push @sessions,
		  {
			key => $key,
			session => $session,
			pid => $session->query_safe('SELECT pg_backend_pid()'),
			token => $session->query_safe('\echo :token')
		  };
	}
	return @sessions;
}

sub claim
{
	my ($key, $options) = @_;

	return $node->safe_psql('postgres', "
		BEGIN;
		SELECT outcome, attempt, response
		FROM idem_claim('t', 'o', '$key', '\"$key\"'$options);
		ROLLBACK");
}

sub orders
{
	my ($key) = @_;

	return $node->safe_psql('postgres',
		"SELECT count(*) FROM orders WHERE key = '$key'");
}

my @keys;
for my $round ('backends', 'server')
{
	my @sessions = (
		sessions_at_every_point($round, 'atomic', @atomic),
		sessions_at_every_point($round, 'leased', @leased));

	# one more, within the handler of idem_execute
	my $lock = session($node);
	$lock->query_safe('SELECT pg_advisory_lock(1)');
	my $key = "$round, atomic, within the handler";
	my $session = session($node);
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	start_query($session,
		"SELECT idem_execute('t', 'o', '$key', '\"$key\"', 'insert_order(jsonb)')");
	wait_for($node, "SELECT wait_event = 'advisory' FROM pg_stat_activity
		WHERE pid = $pid");
	push @sessions, { key => $key, session => $session, pid => $pid };

	my @psqls = ($lock, map { $_->{session} } @sessions);
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
		$key = $_->{key};
		push @keys, $key;
		my ($kind, $point) = $key =~ /, (.*), (.*)/;
		my $outcome = claim($key, '');

		if ($point eq 'after commit')
		{
			is($outcome, 'replay|1|"done"', "$key: replay");
			is(orders($key), 1, "$key: one order");
			next;
		}
		is(orders($key), 0, "$key: no order");
		if ($kind eq 'atomic' || $point eq 'after claim')
		{
			is($outcome, 'execute|1|', "$key: execute");
			next;
		}
		is($outcome, 'in_progress|1|', "$key: in progress while leased");

		# the lease, shortened by the token alone, is waited for
		$node->safe_psql('postgres', "SELECT
			idem_heartbeat('t', 'o', '$key', $_->{token}, '500 ms')");
		is(claim($key, ", wait => '1 minute'"),
			'resume|2|', "$key: resume when the lease lapses");
	}
}

# Every command ends now, the lapsed ones in another attempt.
is(@keys, 2 * (@atomic / 2 + @leased / 2 + 1), 'every point was tried');
for my $key (@keys)
{
	$node->safe_psql('postgres', "
		DO \$\$
		DECLARE
			t idem_ticket := idem_claim('t', 'o', '$key', '\"$key\"');
		BEGIN
			IF (idem_require(t)).outcome <> 'replay' THEN
				INSERT INTO orders VALUES ('$key');
				PERFORM idem_complete(t, '\"done\"');
			END IF;
		END \$\$");
}
is($node->safe_psql('postgres', q{
		SELECT count(*), count(DISTINCT key) FROM orders
		JOIN idem_record USING (key) WHERE state = 'succeeded'}),
	@keys . '|' . @keys, 'in the end every command has one order');
is($node->safe_psql('postgres', 'SELECT count(*) FROM orders'),
	@keys, 'and there is no other');

done_testing();
