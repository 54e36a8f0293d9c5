# Proves that an index that somebody has dropped, or is making anew with CREATE
# INDEX CONCURRENTLY, is not asked: it does not have every row, so a guard that is
# held would be granted once more, and a command with an intent in flight would be
# taken over.  The call is refused, whether the index is missing, being made, or was
# left invalid; what does not need it goes on; and with the index all is as before.
use strict;
use warnings;

use Idem;
use IdemTest;
use Test::More;

my $node = Idem::new_node('index_anew');
$node->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	SELECT idem_define('short', tombstone_retention => '1 us'::interval, ttl => '1 us'::interval);
	SELECT idem_complete(idem_claim('t', 'o', 'first', guard => 'g'), '1');
	SELECT idem_complete(idem_claim('t', 'o', 'refunded', guard => 'other'), '1');
	SELECT (idem_intend(idem_claim('t', 'o', 'paid', lease => '1 us'), 'pay', 'bank')).state;
	SELECT (idem_send(operation_id, 'w', '1 us')).state FROM idem_intent});

my %definitions = map { $_ => $node->safe_psql('postgres', "SELECT pg_get_indexdef('$_'::regclass)") }
	qw(idem_record_guard idem_intent_address idem_intent_due idem_record_expiring idem_record_tombstone
	idem_event_address);
my $claim = q{SELECT outcome FROM idem_claim('t', 'o', 'second', guard => 'g', lease => '1 hour')};
my $take = q{SELECT outcome FROM idem_claim('t', 'o', 'paid', lease => '1 hour')};
my $sweep = q{SELECT swept > 10 FROM idem_sweep(10)};
my $purge = q{SELECT idem_complete(idem_claim('t', 'short', clock_timestamp()::text), '1');
	SELECT idem_sweep(10);
	SELECT purged > 0 FROM idem_sweep(10)};

# Index, what asks it, and what that says where the index is there.
my @asks = (
	[ 'idem_record_guard', $claim, 'duplicate' ],
	[ 'idem_intent_address', $take, 'unknown' ],
	[ 'idem_intent_due', q{SELECT count(*) FROM idem_dispatch('bank', 'w', 1, '1 hour')}, '0' ],
	[ 'idem_record_expiring', $sweep, 'f' ],
	[ 'idem_record_tombstone', $sweep, 'f' ],
	[ 'idem_event_address', $purge, 't' ]);

my ($maker, $caller, $holder) = map { session($node) } 1 .. 3;

for my $case (@asks)
{
	my ($index, $ask, $answer) = @$case;
	my $others = q{SELECT outcome FROM idem_replay('t', 'o', 'refunded')};

	$maker->query_safe("DROP INDEX $index");
	is(sqlstate($caller, $ask), '55000', "$index is missing");
	is($caller->query_safe($others), 'replay', 'and not needed for what needs it not');

	# A writer that is not done keeps the new index from being filled.
	$holder->query_safe('BEGIN; LOCK TABLE idem_record, idem_intent, idem_event IN ROW EXCLUSIVE MODE');
	my $made = $definitions{$index} =~ s/INDEX/INDEX CONCURRENTLY/r;
	start_query($maker, "$made;");
	wait_for($node, "SELECT count(*) = 1 FROM pg_stat_progress_create_index WHERE phase LIKE 'waiting for writers%'");
	is(sqlstate($caller, $ask), '55000', 'being made');
	$holder->query_safe('ROLLBACK');
	answer($maker);

	$node->safe_psql('postgres', "UPDATE pg_index SET indisvalid = false WHERE indexrelid = '$index'::regclass");
	is(sqlstate($caller, $ask), '55000', 'left invalid');
	$maker->query_safe("REINDEX INDEX $index");
	is((split /\n/, $caller->query_safe($ask))[-1], $answer, 'there again');
}

# The primary keys cannot be made anew beside others, but dropped.
my %by_key = (
	idem_record => q{SELECT idem_replay('t', 'o', 'first')},
	idem_intent => q{SELECT idem_confirm(gen_random_uuid(), 1)},
	idem_step => q{SELECT idem_step(t, 's') FROM idem_claim('t', 'o', 'stepped', lease => '1 hour') AS t});
for my $table (sort keys %by_key)
{
	$node->safe_psql('postgres', "ALTER TABLE $table DROP CONSTRAINT ${table}_pkey");
	is(sqlstate($caller, $by_key{$table}), '55000', "$table has no primary key");
	$node->safe_psql('postgres', "DROP EXTENSION idempotency; CREATE EXTENSION idempotency");
}

$_->quit for $maker, $caller, $holder;
done_testing();
