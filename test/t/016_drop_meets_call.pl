# Proves that a call which meets DROP EXTENSION, or the change of an index, just
# when it asks for a table says what is the matter, or goes on with what is there
# afterwards: "could not open relation with OID" helps nobody.  (Where a table's
# row type is returned, or a SQL body names it, the server itself says just that.)
# Nor does it touch a table with other columns than the library knows, as an upgrade
# adds them: the row would have anything in them.
use strict;
use warnings;

use Idem;
use IdemTest;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = Idem::new_node('drop_meets_call');
$node->safe_psql('postgres', 'CREATE EXTENSION idempotency');

my ($caller, $changer) = map { session($node) } 1 .. 2;

# What the caller is told when the change commits while it waits for a table.
sub meet
{
	my ($change, $call) = @_;

	$changer->query_safe("BEGIN; $change");
	start_query($caller, $call);
	wait_for($node, q{SELECT count(*) = 1 FROM pg_locks
		WHERE locktype = 'relation' AND NOT granted});
	$changer->query_safe('COMMIT');
	return (answer($caller))[0];
}

# The last statement's answer is that of the call, or its SQLSTATE.
my $say = q{\if :ERROR
	\echo :SQLSTATE
	\endif
	--};
my %calls = (
	claim => q{SELECT outcome FROM idem_claim('t', 'o', 'a', lease => '1 hour')},
	replay => q{SELECT outcome FROM idem_replay('t', 'o', 'k')},
	sweep => q{SELECT swept FROM idem_sweep(10)});
my %after = (claim => 'execute', replay => 'absent', sweep => 0);

for my $name (sort keys %calls)
{
	# what is remembered is of before
	$caller->query_safe(q{SELECT idem_replay('t', 'o', 'k')});
	like(meet('DROP EXTENSION idempotency', "$calls{$name};\n$say"),
		qr/^(55000|42883|42P01)$/, "$name meets DROP: a clear error");
	$node->safe_psql('postgres', 'CREATE EXTENSION idempotency');
	$caller->query_safe(q{SELECT idem_replay('t', 'o', 'k')});
	like(meet('DROP EXTENSION idempotency; CREATE EXTENSION idempotency',
			"$calls{$name};\n$say"),
		qr/^($after{$name}|42883|42P01)$/, "$name meets DROP and CREATE");
}

# An index that is made anew while a purge waits for its table.
$node->safe_psql('postgres', q{
	SELECT idem_define('o', tombstone_retention => '1 us'::interval, ttl => '1 us'::interval);
	SELECT idem_complete(idem_claim('t', 'o', key), '1') FROM unnest('{a,b}'::text[]) AS key;
	SELECT idem_sweep(1)});
$caller->query_safe(q{SELECT idem_replay('t', 'o', 'k')});
is(meet(q{
			DROP INDEX idem_event_address;
			CREATE INDEX idem_event_address ON idem_event (tenant, operation, key)},
		"SELECT purged FROM idem_sweep(1);\n$say"),
	1, 'a purge meets another index');

# An index that is made anew while a session reads where the tables are, for the
# first time: it is stopped on its way, here or there.  (Not for long: it may have
# a lock of the server's.)
my ($before, @refused) = (0);
for (1 .. 60)
{
	my $new = session($node);
	my $pid = $new->query_safe(q{LOAD 'idempotency'; SELECT pg_backend_pid()});

	my $told = start_query($new,
		"BEGIN;\nSELECT outcome FROM idem_claim('t', 'o', 'g', guard => 'g');\n$say");
	usleep(rand 1500);
	kill 'STOP', $pid;
	my $changed = start_query($changer, q{
		BEGIN;
		ALTER INDEX idem_record_guard RENAME TO before;
		CREATE UNIQUE INDEX idem_record_guard ON idem_record (tenant, operation, guard)
		WHERE guard IS NOT NULL
			AND (state IN ('processing', 'unknown', 'succeeded') OR state = 'released' AND once_more);
		DROP INDEX before;
		COMMIT;
		SELECT extract(epoch FROM clock_timestamp())});
	usleep(30_000);
	my $resumed = time;
	kill 'CONT', $pid;
	$told .= answer($new);
	push @refused, $told if $told !~ /execute$/;
	$new->quit;
	$changed .= answer($changer);
	$before++ if $changed =~ /([0-9.]+)$/ && $1 < $resumed;
}
cmp_ok($before, '>', 10, 'some are stopped before they have a lock');
is("@refused", '', 'and find the new index');

# A column that comes while a call waits for the table.
my $ticket = q{jsonb_populate_record(NULL::idem_ticket, to_jsonb(r))};
my $leased = q{FROM idem_record r WHERE key = 'leased'};
my %meets = (
	idem_record => q{SELECT outcome FROM idem_claim('t', 'o', 'a', lease => '1 hour')},
	idem_step => qq{SELECT idem_step_done($ticket, 'one') $leased},
	idem_intent => q{SELECT * FROM idem_dispatch('bank', 'w', 1, '1 hour')},
	idem_event => qq{SELECT idem_release(tenant, operation, key, token) $leased});

sub fresh
{
	$node->safe_psql('postgres', q{
		DROP EXTENSION idempotency;
		CREATE EXTENSION idempotency;
		SELECT idem_claim('t', 'o', 'leased', lease => '1 hour')});
	$caller->query_safe(q{SELECT idem_replay('t', 'o', 'k')});
}

for my $table (sort keys %meets)
{
	fresh();
	is(meet("ALTER TABLE $table ADD COLUMN more text", "$meets{$table};\n$say"),
		'55000', "another column of $table is met");
	is($node->safe_psql('postgres', "SELECT state, attempt $leased"), 'processing|1',
		'and nothing is changed');
}

# A column that was there before the call.
for my $change ((map { "TABLE $_ ADD COLUMN" } 'idem_origin', 'idem_policy', 'idem_policy_steps', sort keys %meets),
	map { "TYPE $_ ADD ATTRIBUTE" } 'idem_ticket', 'idem_response')
{
	fresh();
	$node->safe_psql('postgres', "ALTER $change more text");
	is(sqlstate($caller, $_), '55000', "ALTER $change: $_")
	  for $meets{idem_record}, $meets{idem_step};
}

# Nor is a column touched that is of another type now, or gone; nor a table that a
# crash empties.
for my $change ((map { "$_ SET UNLOGGED" } 'idem_origin', 'idem_policy', 'idem_policy_steps', sort keys %meets),
	'idem_record ALTER COLUMN code TYPE text', 'idem_record DROP COLUMN ttl CASCADE',
	'idem_step ALTER COLUMN result TYPE jsonb', 'idem_intent ALTER COLUMN response TYPE jsonb',
	'idem_origin ALTER COLUMN adopted_at TYPE text')
{
	fresh();
	$node->safe_psql('postgres', "ALTER TABLE $change");
	is(sqlstate($caller, $_), '55000', "$change: $_")
	  for $meets{idem_record}, $meets{idem_step};
}

# A table that hides rows from its owner, whose rights recovery and adoption have;
# from a superuser none does.
$node->safe_psql('postgres', 'CREATE ROLE plain');
for my $table ('idem_origin', 'idem_policy', 'idem_policy_steps', sort keys %meets)
{
	fresh();
	$node->safe_psql('postgres', "ALTER TABLE $table ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY");
	is(sqlstate($caller, $meets{idem_record}), '00000', "$table hides nothing from a superuser");
	$node->safe_psql('postgres', "ALTER TABLE $table OWNER TO plain");
	is(sqlstate($caller, $meets{idem_record}), '55000', "$table hides rows from its owner");
	$node->safe_psql('postgres', "ALTER TABLE $table NO FORCE ROW LEVEL SECURITY");
	is(sqlstate($caller, $meets{idem_record}), '00000', 'and does not any more');
}

$_->quit for $caller, $changer;
done_testing();
