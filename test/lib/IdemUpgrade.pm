# What the tests of upgrades have in common.
#
#   use IdemUpgrade;
#   my $folder = extension_copy();      # of all that is installed; undef: none
#   add_script($folder, $file, $name);
#   my @lines = catalog($node, 'db');   # all facts, by test/upgrade/catalog.sql
#   my $text = difference(\@before, \@after);     # '' where there is none
#
# Nodes made after extension_copy() see the copy, so that a test can add
# versions without touching what others use.
package IdemUpgrade;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use PostgreSQL::Test::Utils;

our @EXPORT = qw(extension_copy add_script scripts catalog difference
  $upgrade $version);

our $top = "$FindBin::RealBin/../..";
our $upgrade = "$top/test/upgrade";
our ($version) =
  slurp_file("$top/idempotency.control") =~ /^default_version *= *'(.*)'/m;

sub extension_folder
{
	my ($folder) = @_;

	chomp(my $share = `@{[ $ENV{PG_CONFIG} || 'pg_config' ]} --sharedir`);
	return "$folder$share/extension";
}

sub extension_copy
{
	my $from = $ENV{IDEM_DESTDIR} or return;
	my $folder = PostgreSQL::Test::Utils::tempdir();

	system_or_bail('cp', '-R', "$from/.", $folder);
	my $conf = slurp_file("$folder/server.conf");
	$conf =~ s/\Q$from\E/$folder/g;
	unlink "$folder/server.conf";
	append_to_file("$folder/server.conf", $conf);
	$ENV{IDEM_DESTDIR} = $folder;
	return $folder;
}

sub add_script
{
	my ($folder, $file, $name) = @_;

	system_or_bail('cp', $file, extension_folder($folder) . "/$name");
}

# The install scripts of all versions but the present one.
sub scripts
{
	my ($folder) = @_;
	my $present = extension_folder($folder) . "/idempotency--$version.sql";

	return ($present, grep { !/--.*--/ && $_ ne $present }
		  glob extension_folder($folder) . '/idempotency--*.sql');
}

sub catalog
{
	my ($node, $database, $change) = @_;
	my $sql = slurp_file("$upgrade/catalog.sql");

	return split /\n/, $node->safe_psql($database,
		'BEGIN; ' . ($change || '') . "; $sql; ROLLBACK");
}

sub difference
{
	my ($before, $after) = @_;
	my %lines;

	$lines{$_}-- for @$before;
	$lines{$_}++ for @$after;
	return join "\n", map { ($lines{$_} < 0 ? '- ' : '+ ') . $_ }
	  sort grep { $lines{$_} } keys %lines;
}

1;
