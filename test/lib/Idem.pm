# Servers for the TAP tests, on which the extension can be created.
#
#   use Idem;      # make passes -I test/lib
#   my $node = Idem::new_node($name, conf => "work_mem = '1MB'\n");
#   $node->safe_psql('postgres', 'CREATE EXTENSION idempotency');
#   my $standby = Idem::new_standby('standby', $node, conf => ...);
#
# new_node(name, options) returns an initialised, configured and started
# PostgreSQL::Test::Cluster:
#   conf       lines appended to postgresql.conf
#   streaming  true: standbys may follow it
#   init       further options of PostgreSQL::Test::Cluster::init, an array
#   start      false: do not start it
#   install_path, destdir
#              another server, and what test/build has made for it
# new_standby(name, primary, options) returns one that streams from primary,
# started in hot standby; conf and start as above.
#
# IDEM_DESTDIR names the folder that test/build installed into; without it the
# extension is taken from the server's own folders.  Nodes are stopped at the
# end of the test by PostgreSQL::Test::Cluster itself.
package Idem;

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

sub finish
{
	my ($node, %options) = @_;

	$node->append_conf('postgresql.conf', $options{conf})
	  if defined $options{conf};
	$node->start unless defined $options{start} && !$options{start};
	return $node;
}

sub new_node
{
	my ($name, %options) = @_;
	my $destdir = $options{destdir} || $ENV{IDEM_DESTDIR};
	my $node = PostgreSQL::Test::Cluster->new($name,
		$options{install_path} ? (install_path => $options{install_path}) : ());

	$node->init(
		$options{streaming} ? (allows_streaming => 1) : (),
		@{ $options{init} || [] });
	$node->append_conf('postgresql.conf',
		"include '$destdir/server.conf'\n")
	  if defined $destdir;
	return finish($node, %options);
}

sub new_standby
{
	my ($name, $primary, %options) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$primary->backup("for_$name");
	$node->init_from_backup($primary, "for_$name", has_streaming => 1);
	return finish($node, %options);
}

1;
