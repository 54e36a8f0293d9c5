# Proves what happens when one transaction claims more than the lock table
# holds: a clear error, nothing half claimed, a session that works on; that
# 10 000 claims in a transaction fit into a larger one; and that recovery stops
# well short of it.
use strict;
use warnings;

use Idem;
use IdemTest;
use Test::More;

# The default before 19.
my $node = Idem::new_node('lock_table',
	conf => 'max_locks_per_transaction = 64');
$node->safe_psql('postgres', 'CREATE EXTENSION idempotency');

my $session = session($node);
my $claim_many = q{
	SELECT count(*) FROM generate_series(1, 100000) AS i,
	LATERAL (SELECT idem_claim('t', 'o', i::text)) AS claimed};

is(sqlstate($session, "BEGIN; $claim_many"), '53200', 'too many claims');
$session->query_safe('ROLLBACK');
$session->query("\\set VERBOSITY default\nBEGIN; $claim_many");
like($session->{stderr},
	qr/ERROR:  out of shared memory\nHINT:  .*max_locks_per_transaction/,
	'the message has its hint');
$session->{stderr} = '';
is($session->query_safe(q{ROLLBACK;
		SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'}),
	0, 'no lock is left');
is($session->query_safe('SELECT count(*) FROM idem_record'),
	0, 'nothing is claimed');
is($session->query_safe(q{BEGIN; SELECT idem_complete(t) FROM
		(SELECT idem_claim('t', 'o', '1') AS t OFFSET 0) AS c; COMMIT;
		SELECT outcome FROM idem_replay('t', 'o', '1')}),
	"\nreplay", 'the session works on');

# A savepoint keeps what was claimed before the one that failed.
is($session->query_safe(q{
		BEGIN;
		DO $$
		DECLARE
			tickets idem_ticket[];
		BEGIN
			FOR i IN 2 .. 100 LOOP
				tickets := tickets || idem_claim('t', 'o', i::text);
			END LOOP;
			BEGIN
				PERFORM idem_claim('t', 'o', i::text)
				FROM generate_series(101, 100000) AS i;
				RAISE 'the lock table is too large';
			EXCEPTION WHEN out_of_memory THEN
				NULL;
			END;
			PERFORM idem_complete_batch(tickets);
		END $$;
		COMMIT;
		SELECT count(*) FROM idem_record}),
	100, 'a savepoint keeps the claims before it');
is($session->query_safe(
		q{SELECT outcome FROM idem_replay('t', 'o', '101')}),
	'absent', 'and none of those after it');

# All of the others are free again, for others as well.
is($node->safe_psql('postgres', q{
		BEGIN;
		SELECT outcome, count(*) FROM generate_series(1, 1000) AS i,
		idem_claim('t', 'o', i::text) GROUP BY 1 ORDER BY 1;
		ROLLBACK}),
	"execute|900\nreplay|100", 'another session can claim the others');

# While somebody else fills it, what is decided is told all the same.
my $other = session($node);
$other->query_safe(q{BEGIN; SELECT idem_claim('t', 'o', 'new'); ROLLBACK});
$session->query_safe(q{
	BEGIN;
	DO $$
	BEGIN
		FOR i IN 1 .. 1000000 LOOP
			BEGIN
				PERFORM idem_claim('t', 'full', i::text);
			EXCEPTION WHEN out_of_memory THEN
				RETURN;
			END;
		END LOOP;
		RAISE 'the lock table is too large';
	END $$});
sqlstate($other, q{SELECT idem_claim('t', 'o', '1')});
is($other->query_safe(q{SELECT outcome FROM idem_claim('t', 'o', '1')}), 'replay',
	'a full lock table hides no answer');
is(sqlstate($other, q{SELECT idem_claim('t', 'o', 'new')}), '53200', 'it was full');
$session->query_safe('ROLLBACK');
$_->quit for $session, $other;

# Each call of recovery takes an eighth of it, with room for several workers;
# then comes the next transaction.
$node->safe_psql('postgres', qq{
		SELECT count(idem_claim('t', 'recover', i::text, lease => '1 us'))
		FROM generate_series($_ * 400 + 1, $_ * 400 + 400) AS i}) for 0 .. 9;
my $recover = q{SELECT count(*) FROM idem_recover('w', 10000, '1 day')};
my $most = $node->safe_psql('postgres', q{
	SELECT current_setting('max_locks_per_transaction')::int
		* current_setting('max_connections')::int / 8});
my @workers = map { session($node) } 1 .. 4;
is($_->query_safe("BEGIN; $recover"), $most, 'recovery stops short of it')
  for @workers;
is($node->safe_psql('postgres', q{
		SELECT outcome FROM idem_claim('t', 'room', '1', lease => '1 hour')}),
	'execute', 'there is room for others');
$_->query_safe('COMMIT'), $_->quit for @workers;
my $recovered = 4 * $most;
while ((my $n = $node->safe_psql('postgres', $recover)) > 0)
{
	$recovered += $n;
}
is($recovered, 4000, 'and in the end all are recovered');

$node->append_conf('postgresql.conf', 'max_locks_per_transaction = 512');
$node->restart;
is($node->safe_psql('postgres', q{
		BEGIN;
		SELECT count(*) FROM generate_series(1001, 11000) AS i,
		LATERAL (SELECT idem_complete(idem_claim('t', 'o', i::text))) AS c;
		COMMIT;
		SELECT count(*) FROM idem_record WHERE operation = 'o'}),
	"10000\n10100", '10 000 commands in one transaction');
is($node->safe_psql('postgres', q{
		BEGIN;
		CREATE TEMP TABLE tickets ON COMMIT DROP AS
		SELECT idem_claim('t', 'o', i::text) AS t
		FROM generate_series(11001, 21000) AS i;
		SELECT idem_complete_batch(array_agg(t)) FROM tickets;
		COMMIT;
		SELECT count(*) FROM idem_record WHERE operation = 'o'}),
	"10000\n20100", '10 000 open ones too, completed at the end');

done_testing();
