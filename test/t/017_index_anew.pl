# Proves that an index that somebody has dropped, or is making anew with CREATE
# INDEX CONCURRENTLY, is not asked: it does not have every row, so a guard that is
# held would be granted once more, and a command with an intent in flight would be
# taken over.  The call is refused, whether the index is missing, being made, or was
# left invalid; what does not need it goes on; and with the index all is as before.
# Nor is one asked that was made in another way, in which rows that are there would
# not be found, or others would be; it gets the entries that it needs.  One that is
# made beside the old and takes over its name is found by the sessions that are open.
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
$caller->query_safe('SET client_min_messages = warning');

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

# Made in another way: what asks it is refused until it is as it was.
my %asked_by = map { $_->[0] => [ @$_[ 1, 2 ] ] } @asks;
$asked_by{idem_intent_address} = $asked_by{idem_event_address};
$asked_by{idem_record_open} = [ q{CALL idem_maintain()}, '' ];
$asked_by{idem_intent_resend} = $asked_by{idem_intent_due};
$asked_by{idem_intent_open} = [ q{SELECT count(*) FROM idem_reconcile('nobody', 'w', 1, '1 hour')}, '0' ];
for my $change (
	[ idem_record_guard => 'tenant, operation, guard', 'guard, tenant, operation' ],
	[ idem_record_guard => ', guard', ', guard COLLATE "POSIX"' ],
	[ idem_record_guard => 'WHERE .*', 'WHERE guard IS NOT NULL' ],
	[ idem_record_guard => ', guard', ", (guard || '')" ],
	[ idem_record_open => 'state, lease_until', 'lease_until, state' ],
	[ idem_record_expiring => 'expires_at', 'expires_at DESC' ],
	[ idem_record_expiring => 'WHERE .*', '' ],
	[ idem_record_tombstone => 'btree', 'brin' ],
	[ idem_event_address => 'tenant, operation, key', 'key, tenant, operation' ],
	[ idem_event_address => '$', ' WHERE intent IS NULL' ],
	[ idem_intent_address => 'tenant, operation, key', 'key, tenant, operation' ],
	[ idem_intent_address => 'tenant, operation, key', 'tenant, operation' ],
	[ idem_intent_due => ' AND send', '' ],
	[ idem_intent_due => 'due_at', 'due_at, created_at' ],
	[ idem_intent_open => 'lease_until', 'due_at' ],
	[ idem_intent_resend => 'WHERE .*', '' ])
{
	my ($index, $what, $by) = @$change;
	my ($ask, $answer) = @{ $asked_by{$index} };
	my $definition = $node->safe_psql('postgres', "SELECT pg_get_indexdef('$index'::regclass)");
	my $other = $definition =~ s/$what/$by/r;

	isnt($other, $definition, "$index: $by");
	$maker->query_safe("BEGIN; DROP INDEX $index; $other; COMMIT");
	is(sqlstate($caller, $ask), '55000', 'is not asked');
	$maker->query_safe("BEGIN; DROP INDEX $index; $definition; COMMIT");
	like($caller->query_safe($ask), qr/^$answer$/m, 'and asked as it was');
}

# Until then it gets the entries that it needs, not those that the old one did.
my $open = $node->safe_psql('postgres', q{SELECT pg_get_indexdef('idem_record_open'::regclass)});
$maker->query_safe("BEGIN; DROP INDEX idem_record_open; @{[ $open =~ s/ WHERE .*//r ]}; COMMIT");
$caller->query_safe(q{SELECT idem_complete(idem_claim('t', 'o', 'noted'), '1')});
is($node->safe_psql('postgres', q{
		SET enable_seqscan = off;
		SET enable_bitmapscan = off;
		SELECT count(*) FROM idem_record WHERE state = 'succeeded' AND key = 'noted'}),
	'1', 'an index without a condition has every row');
$maker->query_safe("BEGIN; DROP INDEX idem_record_open; $open; COMMIT");

# Beside the old one, whose name it gets when that is gone.
$maker->query_safe($definitions{idem_record_guard} =~ s/INDEX idem_record_guard/INDEX CONCURRENTLY beside/r);
$maker->query_safe('DROP INDEX CONCURRENTLY idem_record_guard');
is(sqlstate($caller, $claim), '55000', 'there is none of that name');
$maker->query_safe('ALTER INDEX beside RENAME TO idem_record_guard');
is($caller->query_safe($claim), 'duplicate', 'and then there is');

# Another collation of a column makes its indexes anew.
$maker->query_safe('ALTER TABLE idem_record ALTER COLUMN guard TYPE text COLLATE "POSIX"');
is(sqlstate($caller, $claim), '55000', 'another collation');
$maker->query_safe('ALTER TABLE idem_record ALTER COLUMN guard TYPE text COLLATE "C"');
is($caller->query_safe($claim), 'duplicate', 'and the old one');

# Nothing in the session has to do with it.
my $odd = session($node);
$odd->query_safe('CREATE SCHEMA decoy; CREATE DOMAIN decoy.text AS pg_catalog.text;
	SET search_path = decoy, pg_catalog, public; SET quote_all_identifiers = on');
is($odd->query_safe("BEGIN; $claim; SHOW search_path; SHOW quote_all_identifiers; ROLLBACK"),
	"duplicate\ndecoy, pg_catalog, public\non", 'with names in quotes, and of others before; these stay as they are');
$odd->quit;

# The columns of a primary key in another order.
$maker->query_safe('ALTER TABLE idem_record DROP CONSTRAINT idem_record_pkey, ADD PRIMARY KEY (operation, tenant, key)');
is(sqlstate($caller, q{SELECT idem_replay('t', 'o', 'first')}), '55000', 'another order of a primary key');
$maker->query_safe('ALTER TABLE idem_record DROP CONSTRAINT idem_record_pkey, ADD PRIMARY KEY (tenant, operation, key) INCLUDE (state)');
is($caller->query_safe($claim), 'duplicate', 'and the old one, with more beside it');

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
