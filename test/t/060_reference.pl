# Proves that README.md is a complete reference: it lists every function, view,
# setting and SQLSTATE with its meaning, the arguments and defaults as they are
# declared, and what each level may call; and nothing that does not exist.  And
# that META.json says what is so.
use strict;
use warnings;

use FindBin;
use Idem;
use JSON::PP;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = "$FindBin::RealBin/../..";
my $readme = slurp_file("$root/README.md");
my $node = Idem::new_node('reference');
$node->safe_psql('postgres', 'CREATE EXTENSION idempotency');

# The rows of the tables of a section, whose last cell, the meaning, says
# something.
sub rows
{
	my ($title) = @_;
	my ($section) = $readme =~ /^## \Q$title\E\n(.*?)(?=^## |\z)/ms;
	my @rows;

	for (split /\n/, $section)
	{
		next unless /^\| *[^|\s-]/;
		my (undef, @cells) = split / *\| */;
		push @rows, { first => $cells[0], meaning => $cells[-1], cells => \@cells }
		  if @cells > 1 && $cells[-1] =~ /\w/;
	}
	return @rows;
}

sub lines
{
	return split /\n/, $node->safe_psql('postgres', $_[0]);
}

# Names in the first column, with their arguments: `name(a, b)`.
my %listed;
for my $row (rows('Functions'))
{
	push @{ $listed{$1} }, $2 while $row->{first} =~ /`(\w+)(?:\(([^)]*)\))?`/g;
}

my %declared;
for (lines(q{
	SELECT p.proname, array_to_string(p.proargnames[1:p.pronargs], ', ')
	FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
	WHERE d.deptype = 'e' AND p.prorettype <> 'trigger'::regtype
	  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'idempotency')
	  AND obj_description(p.oid, 'pg_proc') NOT LIKE 'Internal:%'}))
{
	my ($name, $arguments) = split /\|/;
	push @{ $declared{$name} }, $arguments // '';
}
my @views = lines(q{
	SELECT c.relname FROM pg_class c JOIN pg_depend d
		ON d.classid = 'pg_class'::regclass AND d.objid = c.oid
	WHERE d.deptype = 'e' AND c.relkind = 'v'
	  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'idempotency')});
cmp_ok(keys %declared, '>', 30, 'functions are found');
cmp_ok(@views, '>', 3, 'views are found');

is_deeply([ grep { !$listed{$_} } sort keys %declared, @views ], [],
	'every function and view is listed');
is_deeply(
	[ grep { my $name = $_; !$declared{$name} && !grep { $_ eq $name } @views }
		  sort keys %listed ],
	[], 'nothing else is');
for my $name (sort keys %declared)
{
	# the form with a ticket stands for both
	my ($form) = grep { !/^tenant, operation, key, token\b/ } @{ $declared{$name} };
	is($listed{$name}[0] // '', $form, "the arguments of $name");
}

my @documented = grep { /^`/ } map { $_->{first} } rows('Settings');
my @settings = lines(q{LOAD 'idempotency';
	SELECT name FROM pg_settings WHERE name LIKE 'idempotency.%'});
cmp_ok(@settings, '>', 5, 'settings are found');
is_deeply([ sort @documented ], [ sort map { "`$_`" } @settings ],
	'every setting is listed, and nothing else');
my %who = (user => 'anybody', superuser => 'superuser', sighup => 'server start');
for (map { $_->{cells} } grep { $_->{first} =~ /^`/ } rows('Settings'))
{
	my ($name, $default, $who) = map { tr/`//dr } @$_;
	my ($value, $context) = split /\|/, (lines(qq{LOAD 'idempotency';
		SELECT current_setting(name), context FROM pg_settings WHERE name = '$name'}))[-1];

	is($default =~ s/ (d)ay$/$1/r =~ s/ (MB)$/$1/r, $value, "the default of $name");
	is($who, $who{$context}, "who sets $name");
}

my ($define) = @{ $declared{idem_define} };
is_deeply([ sort map { $_->{first} =~ /^`(\w+)`$/ } rows('Policies') ],
	[ sort grep { $_ ne 'operation' } split /, /, $define ], 'every part of a policy is listed');

# Codes: those that the sources name, and those that the functions' comments do.
my %codes = map { $_ => 1 } map { $_->{first} =~ /\b([0-9A-Z]{5})\b/g } rows('Errors');
my %raised = map { $_ => 1 } lines(q{
	SELECT DISTINCT (regexp_matches(substring(obj_description(oid, 'pg_proc') FROM 'Errors:.*'),
									'\m(?:ID|[0-9]{2})[0-9A-Z]{3}\M', 'g'))[1]
	FROM pg_proc WHERE proname LIKE 'idem\_%'});
my $errors = slurp_file("$root/src/errors.h");
$raised{"$1$2$3$4$5"} = 1
  while $errors =~ /MAKE_SQLSTATE\('(.)', '(.)', '(.)', '(.)', '(.)'\)/g;
for my $file (glob "$root/src/*.sql")
{
	my $source = slurp_file($file);
	$raised{$1} = 1 while $source =~ /ERRCODE = '([0-9A-Z]{5})'/g;
}
cmp_ok(keys %raised, '>', 15, 'codes are found');
is_deeply([ grep { !$codes{$_} } sort keys %raised ], [], 'every code is listed');
my @errors = grep { /^ID/ } keys %codes;
is_deeply([ grep { !$raised{$_} } sort @errors ], [], 'every code of ours exists');

# Levels: what each adds.
my %levels = map { $_->{first} => [ sort $_->{meaning} =~ /`(idem_\w+)`/g ] } rows('Rights');
for (lines(q{
	SELECT l.level, (SELECT string_agg(m, ' ' ORDER BY m COLLATE "C") FROM unnest(l.members) AS m
					 WHERE m NOT IN ('idem_ticket', 'idem_response'))
	FROM idem_levels() AS l}))
{
	my ($level, $members) = split /\|/;
	is("@{ $levels{qq{`$level`}} // [] }", $members, "what the level $level adds");
}

# What a package index reads agrees with what the server reads.
my $meta = decode_json(slurp_file("$root/META.json"));
my %control = slurp_file("$root/idempotency.control") =~ /^(\w+) *= *'(.*)'$/mg;
is($meta->{version}, "$control{default_version}.0", 'META.json names the version');
is($meta->{provides}{idempotency}{version}, $meta->{version}, 'also that of what it provides');
is(lcfirst($meta->{abstract}), $control{comment}, 'and says the same about it');
ok(-e "$root/$_", "$_ is there")
  for map { ($_->{file}, $_->{docfile}) } values %{ $meta->{provides} };

done_testing();
