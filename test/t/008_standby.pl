# Proves what a standby can do: replay, in every isolation level it has, and
# nothing that writes; and that after its promotion claims work there.
use strict;
use warnings;

use Idem;
use IdemTest;
use Test::More;

my $primary = Idem::new_node('primary', streaming => 1);
$primary->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	SELECT idem_define('o', ttl => '1 hour', ignore_paths => '{/trace}')});
my $standby = Idem::new_standby('standby', $primary);

my $token = $primary->safe_psql('postgres', q{
	SELECT token FROM idem_claim('t', 'o', 'leased', lease => '1 hour')});
$primary->safe_psql('postgres', q{
	SELECT idem_complete(idem_claim('t', 'o', 'done', '{"a": 1}'),
		'{"b":  2}', 200, 'r', '{}', '\x00');
	SELECT idem_fail(idem_claim('t', 'o', 'failed'), '"no"');
	SELECT idem_complete(idem_claim('t', 'o', 'expired', ttl => '1 us'));
	SELECT idem_claim('t', 'o', 'lapsed', lease => '1 us')});
my $open = session($primary);
$open->query_safe(q{BEGIN; SELECT idem_claim('t', 'o', 'open')});
$primary->wait_for_catchup($standby);

my $replays = q{
	SELECT idem_replay('t', 'o', 'done', '{"a": 1.0, "trace": 5}')::text;
	SELECT outcome, token FROM idem_replay('t', 'o', 'done', '{"a": 2}');
	SELECT outcome, response FROM idem_replay('t', 'o', 'failed');
	SELECT outcome FROM idem_replay('t', 'o', 'expired');
	SELECT outcome FROM idem_replay('t', 'o', 'leased');
	SELECT outcome, state FROM idem_replay('t', 'o', 'lapsed');
	SELECT outcome FROM idem_replay('t', 'o', 'never');
};
my $answers = $standby->safe_psql('postgres', $replays);
is($answers, $primary->safe_psql('postgres', $replays),
	'replays are those of the primary');
like($answers, qr/^\(replay,.*\nmismatch\|\nreplay\|"no"\nexpired\nin_progress\nabsent\|processing\nabsent$/,
	'and what they should be');
is($standby->safe_psql('postgres', "
		BEGIN ISOLATION LEVEL $_; $replays COMMIT"), $answers, "also under $_")
  for 'READ COMMITTED', 'REPEATABLE READ';

# Locks of the primary are not known here.
my $ask = q{SELECT outcome FROM idem_replay('t', 'o', 'open')};
is($primary->safe_psql('postgres', $ask), 'in_progress', 'open on the primary');
is($standby->safe_psql('postgres', $ask), 'absent', 'absent on the standby');

# A session with a snapshot older than the commit is told of it, too.
my $old = session($standby);
$old->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; $ask");
$open->query_safe(q{ROLLBACK;
	SELECT idem_complete(idem_claim('t', 'o', 'open'))});
$open->quit;
$primary->wait_for_catchup($standby);
is($old->query_safe($ask), 'replay', 'also with an old snapshot');
is($old->query_safe("COMMIT; $ask"), 'replay', 'and with a new one');
$old->quit;

is(sqlstate($standby, "SELECT $_"), '25006', "$_ is refused")
  for q{idem_claim('t', 'o', 'new')}, q{idem_claim('t', 'o', 'done')},
  q{idem_claim('t', 'o', 'new', wait => '1 minute', lease => '1 minute')},
  q{idem_claim_batch('t', 'o', '{a,b}')},
  map { "idem_$_('t', 'o', 'leased', $token)" }
  qw(complete fail release heartbeat hold);
is(sqlstate($standby, q{SELECT idem_define('other')}),
	'25006', 'idem_define is refused');
is($standby->safe_psql('postgres',
		q{SET idempotency.durability = 'replicated';
		SELECT outcome FROM idem_replay('t', 'o', 'failed')}),
	'replay', 'a replay promises nothing there, and works');

# The primary is gone: its tickets are as good here, and claims work.
my $living = session($standby);
$living->query_safe($ask);
$primary->stop('immediate');
$standby->promote;
is($living->query_safe(
		q{SELECT outcome FROM idem_claim('t', 'o', 'done', '{"a": 1}')}),
	'replay', 'promoted: replay, in a session from before');
is(sqlstate($living,
		q{SELECT idem_complete(idem_claim('t', 'o', 'new'), '1')}),
	'00000', 'promoted: a new command');
is($standby->safe_psql('postgres',
		q{SELECT outcome FROM idem_claim('t', 'o', 'leased')}),
	'in_progress', 'promoted: the lease of the old primary holds');
is(sqlstate($standby, "SELECT idem_complete('t', 'o', 'leased', $token, '2')"),
	'00000', 'promoted: its ticket completes');
is($standby->safe_psql('postgres', q{
		SELECT outcome, response FROM idem_replay('t', 'o', 'leased')}),
	'replay|2', 'promoted: and is replayed');
is($standby->safe_psql('postgres', q{
		BEGIN; SELECT outcome, attempt FROM idem_claim('t', 'o', 'lapsed');
		ROLLBACK}),
	'resume|2', 'promoted: the lapsed one is taken over');
$living->quit;

done_testing();
