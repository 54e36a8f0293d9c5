# Proves that a publication FOR ALL TABLES breaks no call, and that a
# subscriber gets every record and policy and can replay them, and tells the same
# lives (case 32).  It can take over when the publisher has gone.
use strict;
use warnings;

use Idem;
use IdemTest;
use Test::More;

my @logical = (init => [ allows_streaming => 'logical' ]);
my $publisher = Idem::new_node('publisher', @logical);
my $subscriber = Idem::new_node('subscriber', @logical);
$_->safe_psql('postgres', 'CREATE EXTENSION idempotency')
  for $publisher, $subscriber;

# Some before, to be copied; the rest arrives as changes.
my $token = $publisher->safe_psql('postgres', q{
	SELECT token FROM idem_claim('t', 'o', 'leased before', lease => '1 hour')});
$publisher->safe_psql('postgres', q{
	SELECT idem_complete(idem_claim('t', 'o', 'before', '1'), '"before"')});
$publisher->safe_psql('postgres', 'CREATE PUBLICATION p FOR ALL TABLES');
$subscriber->safe_psql('postgres', sprintf
	q{CREATE SUBSCRIPTION s CONNECTION '%s dbname=postgres' PUBLICATION p},
	$publisher->connstr);
$subscriber->wait_for_subscription_sync($publisher, 's');

for (
	[ claim => q{idem_complete(idem_claim('t', 'o', 'atomic', '1'), '"a"')} ],
	[ heartbeat =>
		  "idem_heartbeat('t', 'o', 'leased before', $token, '2 hours')" ],
	[ complete => "idem_complete('t', 'o', 'leased before', $token, '\"l\"')" ],
	[ 'leased claim' =>
		  q{idem_claim('t', 'o', 'leased', lease => '1 hour')} ],
	[ release => q{idem_release(idem_claim('t', 'o', 'released', '1',
		lease => '1 hour'), 'why')} ],
	[ 'claim after release' => q{idem_complete(
		idem_claim('t', 'o', 'released', '1'), '"r"')} ],
	[ fail => q{idem_fail(idem_claim('t', 'o', 'failed'), '"f"')} ],
	[ large => q{idem_complete(idem_claim('t', 'o', 'large',
		lease => '1 hour'), to_json(repeat('x', 900000)), 1, 'r',
		jsonb_build_object('h', (SELECT string_agg(md5(i::text), '')
			FROM generate_series(1, 1000) AS i)), '\xff')} ],
	[ 'lapsed claim' => q{idem_claim('t', 'o', 'taken over', lease => '1 us')} ],
	[ takeover => q{idem_complete(idem_claim('t', 'o', 'taken over'), '"t"')} ],
	[ policy => q{idem_define('o', ttl => '1 day')} ],
	[ 'policy, changed' => q{idem_define('o', ttl => '2 days')} ],
	[ expired => q{idem_complete(idem_claim('t', 'o', 'expired', ttl => '1 us'), '"e"')} ],
	[ 'policy that forgets' => q{idem_define('gone', ttl => '1 us', tombstone_retention => '1 us')} ],
	[ 'what is forgotten' => q{idem_complete(idem_claim('t', 'gone', 'k'))} ],
	[ step => q{idem_step_done(c, 'one', '"s"', '1')
		FROM idem_claim('t', 'o', 'story', lease => '1 hour') AS c} ],
	[ intent => q{idem_intend(jsonb_populate_record(NULL::idem_ticket, to_jsonb(r)), 'pay', 'bank', '"i"')
		FROM idem_record AS r WHERE key = 'story'} ],
	[ send => q{idem_send(operation_id, 'w', '1 us') FROM idem_intent} ],
	[ reconcile => q{idem_reconcile('bank', 'w', 1, '1 hour')} ],
	[ settle => q{idem_settle(operation_id, token, 'happened', '1', '"a"') FROM idem_intent} ],
	[ 'sweep and purge' => q{idem_sweep()} ],
	[ 'replay' => q{idem_replay('t', 'o', 'atomic', '1')} ])
{
	my ($what, $sql) = @$_;

	is(sqlstate($publisher, "SELECT $sql"), '00000', "$what is not refused");
}

my $all = q{
	SELECT r::text FROM idem_record r ORDER BY key;
	SELECT p::text FROM idem_policy p ORDER BY operation;
	SELECT e::text FROM idem_event e ORDER BY id;
	SELECT s::text FROM idem_step s;
	SELECT i::text FROM idem_intent i;
	SELECT h::text FROM idem_record r, idem_history(tenant, operation, key) AS h ORDER BY r.key, at;
	SELECT outcome, response FROM idem_replay('t', 'o', 'released', '1');
	SELECT outcome, response FROM idem_replay('t', 'o', 'before', '1')};
$publisher->wait_for_catchup('s');
my $answers = $subscriber->safe_psql('postgres', $all);
ok($answers eq $publisher->safe_psql('postgres', $all),
	'the subscriber has the same');
like($answers, qr/claimed again/, 'with the trail');
like($answers, qr/one,.*\n.*confirmed,/, 'with the step and the intent');
like($answers, qr/\nreplay\|"r"\nreplay\|"before"$/, 'and replays it');

is($subscriber->safe_psql('postgres', q{
		SELECT response IS NULL, (SELECT count(*) FROM idem_record WHERE operation = 'gone')
		FROM idem_record WHERE key = 'expired'}), 't|0', 'what is swept and purged is so there, too');

# A session that had no policy follows the one that arrived.
my $session = session($subscriber);
is($session->query_safe(q{SELECT count(*) FROM idem_policy;
		SELECT outcome FROM idem_replay('t', 'other', 'k')}),
	"2\nabsent", 'a session of the subscriber reads the policies');
$publisher->safe_psql('postgres',
	q{SELECT idem_define('other', max_lease => '1 minute')});
$publisher->wait_for_catchup('s');
is(sqlstate($session,
		q{SELECT idem_claim('t', 'other', 'k', lease => '1 hour')}),
	'22023', 'and follows one that arrives');
$session->quit;

# It is a copy until it is adopted; the trail goes on behind what has arrived, of
# which the server has not told the sequence.
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION s DISABLE');
$subscriber->safe_psql('postgres', 'ALTER SUBSCRIPTION s SET (slot_name = NONE); DROP SUBSCRIPTION s');
$publisher->stop;
my $recover = q{SELECT idem_recover('w', 10, '1 hour')};
my $last = $subscriber->safe_psql('postgres', 'SELECT max(id) FROM idem_event');
is(sqlstate($subscriber, $recover), 'ID006', 'a subscriber is a copy');
is(sqlstate($subscriber, 'SELECT idem_adopt()'), '00000', 'and can be adopted');
is($subscriber->safe_psql('postgres', qq{
		SELECT idem_claim('t', 'o', 'here', lease => '1 us') IS NULL;
		SELECT outcome FROM idem_recover('w', 10, '1 hour');
		SELECT min(id), count(*) > 1 FROM idem_event WHERE id > $last}),
	"f\nresume\n" . ($last + 1) . '|t', 'and takes over');

done_testing();
