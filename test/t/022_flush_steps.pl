# Proves that every call about a step, an intent or an unknown command is
# flushed before its commit returns, also with synchronous_commit off, and that
# a noted intent survives a kill -9 of everything.
use strict;
use warnings;

use IdemTest;
use Test::More;

my ($node, $unflushed) = lazy_node();
my $session = session($node);

$session->query_safe(q{SELECT t::text AS ticket
	FROM idem_claim('t', 'o', 'k', lease => '1 hour') t} . "\n\\gset");
for (
	[ step_done => q{SELECT idem_step_done(:'ticket', 'one')} ],
	[ intend => q{SELECT operation_id AS id FROM idem_intend(:'ticket', 'i', 'q', send => true) \gset} ],
	[ send => q{SELECT token FROM idem_send(:'id', 'w', '1 hour') \gset} ],
	[ defer => q{SELECT idem_defer(:'id', :token, 'busy')} ],
	[ dispatch => q{SELECT idem_retry(:'id', 'not busy');
		SELECT token FROM idem_dispatch('q', 'w', 1, '1 us') \gset} ],
	[ reconcile => q{SELECT token FROM idem_reconcile('q', 'w', 1, '1 hour') \gset} ],
	[ unknown => q{SELECT idem_unknown(:'ticket', 'why')} ],
	[ settle => q{SELECT idem_settle(:'id', :token, 'absent', '1')} ],
	[ 'send again' => q{SELECT token FROM idem_send(:'id', 'w', '1 hour') \gset} ],
	[ confirm => q{SELECT idem_confirm(:'id', :token)} ],
	[ 'claim again' => q{SELECT t::text AS ticket FROM idem_claim('t', 'o', 'k', lease => '1 us') t \gset} ],
	[ 'intend another' => q{SELECT operation_id AS id FROM idem_intend(:'ticket', 'j', 'q') \gset} ],
	[ recover => q{SELECT idem_recover('w', 1, '1 us')} ],
	[ 'send another' => q{SELECT token FROM idem_send(:'id', 'w', '1 hour') \gset} ],
	[ 'give up' => q{SELECT idem_recover('w', 1, '1 us')} ],
	[ reject => q{SELECT idem_reject(:'id', :token, 'no')} ],
	[ cancel => q{SELECT idem_cancel('t', 'o', 'cancelled', 'why')} ])
{
	my ($name, $sql) = @$_;

	$session->query_safe(q{INSERT INTO orders VALUES ('before')});
	cmp_ok($session->query_safe($unflushed), '>', 64,
		"before $name something is not flushed");
	$session->query_safe($sql);
	cmp_ok($session->query_safe($unflushed), '<', 64, "$name: flushed");
}

$session->query_safe(q{SELECT idem_unknown(idem_claim('t', 'o', 'resolved', lease => '1 hour'), 'why');
	INSERT INTO orders VALUES ('before');
	SELECT idem_resolve('t', 'o', 'resolved', 'failed', 'why')});
cmp_ok($session->query_safe($unflushed), '<', 64, 'resolve: flushed');

# An outbox in an atomic claim takes the whole transaction along.
$session->query_safe(q{
	BEGIN;
	SELECT t::text AS ticket FROM idem_claim('t', 'o', 'atomic') t
	\gset
	INSERT INTO orders VALUES ('atomic');
	SELECT idem_intend(:'ticket', 'mail', 'smtp', send => true);
	SELECT idem_complete(:'ticket'::idem_ticket);
	COMMIT;
	INSERT INTO orders VALUES ('after')});
crash($node, $session);
is($node->safe_psql('postgres', q{SELECT name FROM idem_dispatch('smtp', 'w', 1, '1 hour')}),
	'mail', 'after kill -9: the intent is there');
is($node->safe_psql('postgres',
		q{SELECT key FROM orders WHERE key IN ('atomic', 'after')}),
	'atomic', 'with the order beside it, and without the later one');

done_testing();
