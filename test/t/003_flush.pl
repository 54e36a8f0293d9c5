# Proves that what outlives its transaction is flushed before COMMIT returns,
# also with synchronous_commit off: after a kill -9 of everything a leased
# claim is there.  The control: an atomic one, and a plain row, are not.
use strict;
use warnings;

use IdemTest;
use Test::More;

my ($node, $unflushed) = lazy_node();
my $session = session($node);
is($session->query_safe('SHOW synchronous_commit'), 'off',
	'the session commits asynchronously');

$session->query_safe(q{INSERT INTO orders VALUES ('control')});
cmp_ok($session->query_safe($unflushed), '>', 64,
	'control: a plain commit is not flushed');

my $by_token = q{'t', 'o', :'key', :token};
for my $verb (
	[ 'claim', '' ],
	[ 'heartbeat', "SELECT idem_heartbeat($by_token, '1 hour')" ],
	[ 'complete', "SELECT idem_complete($by_token, '1')" ],
	[ 'fail', "SELECT idem_fail($by_token, '1')" ],
	[ 'release', "SELECT idem_release($by_token)" ])
{
	my ($name, $sql) = @$verb;

	$session->query_safe(qq{\\set key $name
		SELECT token FROM idem_claim('t', 'o', :'key', lease => '1 hour')\n\\gset});
	if ($sql ne '')
	{
		$session->query_safe(q{INSERT INTO orders VALUES ('before')});
		cmp_ok($session->query_safe($unflushed), '>', 64,
			"before $name something is not flushed");
		$session->query_safe($sql);
	}
	cmp_ok($session->query_safe($unflushed), '<', 64, "$name: flushed");
}

# max_attempts: the step to unknown
$session->query_safe(q{
	SELECT idem_define('given up', max_attempts => 1);
	SELECT idem_claim('t', 'given up', 'k', lease => '1 us');
	INSERT INTO orders VALUES ('before')});
is($session->query_safe(
		q{SELECT outcome FROM idem_claim('t', 'given up', 'k')}),
	'unknown', 'given up');
cmp_ok($session->query_safe($unflushed), '<', 64, 'unknown: flushed');

# The kill: first what has to survive, then what has not.
$session->query_safe(q{
	BEGIN;
	SELECT idem_claim('t', 'o', 'leased', lease => '1 hour');
	COMMIT;
	BEGIN;
	INSERT INTO orders VALUES ('atomic');
	SELECT idem_complete(idem_claim('t', 'o', 'atomic'), '1');
	COMMIT});
is($session->query_safe(q{SELECT outcome FROM idem_replay('t', 'o', 'atomic')}),
	'replay', 'both are committed');
crash($node, $session);
is($node->safe_psql('postgres',
		q{SELECT outcome FROM idem_claim('t', 'o', 'leased')}),
	'in_progress', 'after kill -9: the leased claim is there');
is($node->safe_psql('postgres',
		q{SELECT outcome FROM idem_replay('t', 'o', 'atomic')}),
	'absent', 'after kill -9: the atomic command is lost');
is($node->safe_psql('postgres',
		q{SELECT count(*) FROM orders WHERE key = 'atomic'}),
	0, 'together with its order');

# The last to be said about a leased command.
stop_writers($node);
$session = session($node);
$session->query_safe(q{
	SELECT token FROM idem_claim('t', 'o', 'completed', lease => '1 hour')
	\gset
	BEGIN;
	INSERT INTO orders VALUES ('completed');
	SELECT idem_complete('t', 'o', 'completed', :token, '1');
	COMMIT;
	INSERT INTO orders VALUES ('after')});
crash($node, $session);
is($node->safe_psql('postgres',
		q{SELECT outcome FROM idem_claim('t', 'o', 'completed')}),
	'replay', 'after kill -9: the leased completion is there');
is($node->safe_psql('postgres',
		q{SELECT key FROM orders WHERE key IN ('completed', 'after')}),
	'completed', 'with its order, and without the later one');

done_testing();
