# Proves that pg_upgrade, which restores the extension in binary-upgrade mode,
# takes records, policies and tickets over as they are, also into a cluster
# that preloads the library.
use strict;
use warnings;

use Idem;
use IdemTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $old = Idem::new_node('old');
my $new = Idem::new_node('new', start => 0,
	conf => q{shared_preload_libraries = 'idempotency'});

$old->safe_psql('postgres', q{
	CREATE SCHEMA "Odd schema";
	CREATE EXTENSION idempotency SCHEMA "Odd schema";
	SET search_path = "Odd schema";
	SELECT idem_define('o', ttl => '7 days', max_attempts => 2);
	SELECT idem_complete(idem_claim('t', 'o', 'done', '{"a": 1}'), '[1,  2]');
	SELECT idem_claim('t', 'o', 'leased', lease => '1 hour');
	SELECT idem_intend(idem_claim('t', 'o', 'lapsed', lease => '1 us'), 'mail', 'mail', send => true);
	CREATE TABLE tickets AS
	SELECT idem_claim('t', 'o', 'kept', lease => '1 hour') AS t});
my $all = q{SET search_path = "Odd schema";
	SELECT r::text FROM idem_record r ORDER BY key;
	SELECT p::text FROM idem_policy p;
	SELECT idem_replay('t', 'o', 'done', '{"a": 1.0}')::text};
my $before = $old->safe_psql('postgres', $all);
like($before, qr/^\(replay,/m, 'there is something to compare');
$old->stop;

my @upgrade = (
	'pg_upgrade', '--no-sync',
	'-b', $old->config_data('--bindir'), '-B', $new->config_data('--bindir'),
	'-d', $old->data_dir, '-D', $new->data_dir,
	'-p', $old->port, '-P', $new->port, '-s', $new->host);
chdir PostgreSQL::Test::Utils::tempdir() or die;
command_ok([ @upgrade, '--check' ], 'pg_upgrade --check');
command_ok(\@upgrade, 'pg_upgrade');

$new->start;
is($new->safe_psql('postgres', $all), $before, 'all is as it was');
is($new->safe_psql('postgres', q{
		SET search_path = "Odd schema";
		SELECT idem_complete(t, '"later"') FROM tickets;
		SELECT outcome, response FROM idem_claim('t', 'o', 'kept')}),
	"\nreplay|\"later\"", 'a ticket from before completes');
is($new->safe_psql('postgres', q{
		SET search_path = "Odd schema";
		SELECT outcome FROM idem_claim('t', 'o', 'leased');
		SELECT idem_complete(idem_claim('t', 'o', 'new'));
		SELECT outcome FROM idem_replay('t', 'o', 'new')}),
	"in_progress\n\nreplay", 'claims work');

# The new cluster has an identity of its own, but nothing ran in between.
is(sqlstate($new, q{SELECT "Odd schema".idem_claim('t', 'o', 'lapsed')}),
	'ID006', 'it is a copy');
is($new->safe_psql('postgres', q{
		SET search_path = "Odd schema";
		SELECT idem_adopt(nothing_since => true);
		SELECT outcome, attempt FROM idem_recover('w', 10, '1 hour');
		SELECT name FROM idem_dispatch('mail', 'w', 10, '1 hour');
		SELECT outcome FROM idem_claim('t', 'o', 'leased')}),
	"\nresume|2\nmail\nin_progress", 'adopted, it goes on');

done_testing();
