# Proves that a prepared transaction keeps its claims to itself across a crash,
# until it is committed (replay) or rolled back (execute), and that none can be
# prepared with an unfinished one.
use strict;
use warnings;

use Idem;
use IdemTest;
use Test::More;

my $node = Idem::new_node('prepared', conf => 'max_prepared_transactions = 10');
$node->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	CREATE TABLE orders (key text)});

sub claim
{
	my ($key, $options) = @_;

	return $node->safe_psql('postgres', "
		BEGIN;
		SELECT outcome, response FROM idem_claim('t', 'o', '$key', '1'$options);
		ROLLBACK");
}

for my $key (qw(committed rolled_back waited_committed waited_rolled_back))
{
	is(sqlstate($node, "
		BEGIN;
		INSERT INTO orders VALUES ('$key');
		SELECT idem_complete(idem_claim('t', 'o', '$key', '1'), '\"$key\"');
		PREPARE TRANSACTION '$key'"), '00000', "$key: prepared");
}
is(sqlstate($node, "
	BEGIN;
	INSERT INTO orders VALUES ('open');
	SELECT idem_claim('t', 'o', 'open', '1');
	PREPARE TRANSACTION 'open'"), 'ID001', 'open claim: not prepared');
is(sqlstate($node, "
	BEGIN;
	SELECT idem_claim('t', 'o', 'leased', '1', lease => '1 hour');
	PREPARE TRANSACTION 'leased'"), '00000', 'leased claim: prepared');

for my $when ('before', 'after')
{
	crash($node) if $when eq 'after';
	for my $key (qw(committed rolled_back leased))
	{
		is(claim($key, ''), 'in_progress|', "$when the crash, $key: held");
		is(claim($key, ", wait => '10 ms'"), 'in_progress|',
			"$when the crash, $key: waiting does not help");
		is($node->safe_psql('postgres',
				"SELECT outcome FROM idem_replay('t', 'o', '$key', '1')"),
			'in_progress', "$when the crash, $key: replay");
	}
	is(claim('open', ''), 'execute|', "$when the crash, open: free");
	is($node->safe_psql('postgres', 'SELECT count(*) FROM orders'), 0,
		"$when the crash: no order is seen");
}

# Those who wait are woken.
for my $key (qw(waited_committed waited_rolled_back))
{
	my $waiter = session($node);
	start_query($waiter, "BEGIN;
		SELECT outcome, response
		FROM idem_claim('t', 'o', '$key', '1', wait => '1 hour'); ROLLBACK");
	wait_for($node, q{SELECT count(*) = 1 FROM pg_stat_activity
		WHERE wait_event = 'advisory'});
	$node->safe_psql('postgres',
		($key =~ /rolled/ ? 'ROLLBACK' : 'COMMIT') . " PREPARED '$key'");
	is(answer($waiter),
		$key =~ /rolled/ ? 'execute|' : "replay|\"$key\"", "$key: woken");
	$waiter->quit;
}

$node->safe_psql('postgres', q{COMMIT PREPARED 'committed'});
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'rolled_back'});
$node->safe_psql('postgres', q{COMMIT PREPARED 'leased'});
is(claim('committed', ''), 'replay|"committed"', 'committed: replay');
is(claim('rolled_back', ''), 'execute|', 'rolled back: execute');
is(claim('leased', ''), 'in_progress|', 'leased and committed: in progress');
is($node->safe_psql('postgres', 'SELECT key FROM orders ORDER BY key'),
	"committed\nwaited_committed", 'orders agree');
is($node->safe_psql('postgres',
		q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}),
	0, 'no key lock is left');

done_testing();
