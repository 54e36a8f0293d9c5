# Proves that pg_upgrade, which restores the extension in binary-upgrade mode,
# takes records, policies and tickets over as they are, also into a cluster
# that preloads the library; from the same version, and from each older one
# that is installed beside it.
use strict;
use warnings;

use Cwd qw(getcwd);
use Idem;
use IdemTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $checkout = getcwd();

# Builds the extension for a server in a folder of its own.
sub build
{
	my ($bindir) = @_;
	my $folder = PostgreSQL::Test::Utils::tempdir();

	delete local @ENV{qw(MAKEFLAGS MAKELEVEL MFLAGS)};
	local $ENV{SCRATCH} = $folder;
	local $ENV{PG_CONFIG} = "$bindir/pg_config";
	symlink $checkout, "$folder/src" or die "$folder/src: $!";
	system_or_bail('test/build', "$folder/inst");
	return "$folder/inst";
}

sub upgrade
{
	my ($from, %server) = @_;

	# From 18 on a cluster has checksums unless told otherwise.
	my @init = (init => [ extra => ['-k'] ]);
	my $old = Idem::new_node("from_$from", %server, @init);
	my $new = Idem::new_node("new_$from", start => 0, @init,
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
	like($before, qr/^\(replay,/m, "$from: there is something to compare");
	$old->stop;

	my @upgrade = (
		'pg_upgrade', '--no-sync',
		'-b', $old->config_data('--bindir'), '-B', $new->config_data('--bindir'),
		'-d', $old->data_dir, '-D', $new->data_dir,
		'-p', $old->port, '-P', $new->port, '-s', $new->host);
	chdir PostgreSQL::Test::Utils::tempdir() or die;
	command_ok([ @upgrade, '--check' ], "$from: pg_upgrade --check");
	command_ok(\@upgrade, "$from: pg_upgrade");
	chdir $checkout or die;

	$new->start;
	is($new->safe_psql('postgres', $all), $before, "$from: all is as it was");
	is($new->safe_psql('postgres', q{
			SET search_path = "Odd schema";
			SELECT idem_complete(t, '"later"') FROM tickets;
			SELECT outcome, response FROM idem_claim('t', 'o', 'kept')}),
		"\nreplay|\"later\"", "$from: a ticket from before completes");
	is($new->safe_psql('postgres', q{
			SET search_path = "Odd schema";
			SELECT outcome FROM idem_claim('t', 'o', 'leased');
			SELECT idem_complete(idem_claim('t', 'o', 'new'));
			SELECT outcome FROM idem_replay('t', 'o', 'new')}),
		"in_progress\n\nreplay", "$from: claims work");

	# The new cluster has an identity of its own, but nothing ran in between.
	is(sqlstate($new, q{SELECT "Odd schema".idem_claim('t', 'o', 'lapsed')}),
		'ID006', "$from: it is a copy");
	is($new->safe_psql('postgres', q{
			SET search_path = "Odd schema";
			SELECT idem_adopt(nothing_since => true);
			SELECT outcome, attempt FROM idem_recover('w', 10, '1 hour');
			SELECT name FROM idem_dispatch('mail', 'w', 10, '1 hour');
			SELECT outcome FROM idem_claim('t', 'o', 'leased')}),
		"\nresume|2\nmail\nin_progress", "$from: adopted, it goes on");
}

my ($ours) = `pg_config --version` =~ /(\d+)/;
upgrade('same');
for my $bindir (glob '/usr/lib/postgresql/*/bin')
{
	my ($theirs) = $bindir =~ /(\d+)/;
	next unless $theirs < $ours && -x "$bindir/postgres" && -x "$bindir/pg_config";
	upgrade($theirs, install_path => $bindir =~ s!/bin$!!r, destdir => build($bindir));
}

done_testing();
