# Proves that dump and restore, in every usual form, bring all records and
# policies back without an error: what was replayed before is replayed from
# the copy byte for byte (case 27).
use strict;
use warnings;

use Idem;
use IdemTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Idem::new_node('dump');
my $folder = PostgreSQL::Test::Utils::tempdir();

$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', <<'END');
	CREATE SCHEMA "Odd schema";
	CREATE EXTENSION idempotency SCHEMA "Odd schema";
	SET search_path = "Odd schema";

	SELECT idem_define('o', ttl => '7 days', max_lease => '1 day',
		wait => '20 ms', max_attempts => 3, ignore_paths => '{/trace,/a~1b}',
		keep_request => true, steps => '{"one","two, three"}',
		comment => E'line\nbreak\\.');
	SELECT idem_define('o', ttl => '8 days', ignore_paths => '{/trace}');

	CREATE TABLE answers (key text, response json, code int, resource text,
						  headers jsonb, body bytea);
	INSERT INTO answers (key) VALUES
	('nothing'), (E'key with\ttab, "quotes", \\N and é');
	INSERT INTO answers VALUES
	('json null', 'null', 0, 'r', 'null', ''),
	('white space', $$ {"b" : 1,
		"a":1.0e0, "a":"\u00e9\\"} $$, -1,
	 E'tab\tand \\. and é', '{"b": 1, "a": null}', '\x00ff0a5c'),
	('large', to_json(repeat('é\t', 50000)), 200, repeat('r', 1000),
	 jsonb_build_object('h', repeat('h', 9000)),
	 convert_to(repeat('0123456789', 10000), 'UTF8'));

	CREATE FUNCTION random_bytes() RETURNS bytea LANGUAGE sql AS $$
		SELECT decode(string_agg(md5(i::text), '' ORDER BY i), 'hex')
		FROM generate_series(1, 2000) AS i $$;
	INSERT INTO answers (key, body) VALUES ('incompressible', random_bytes());

	SELECT idem_complete(idem_claim('t', 'o', key,
			'{"n": 1, "trace": 1}'), response, code, resource, headers, body)
	FROM answers;
	SELECT idem_fail(idem_claim('t', 'o', 'failed', '"é"'), '"no"', 402);
	SELECT idem_release(idem_claim('t', 'o', 'released', '1',
			lease => '1 hour'), E'why\t?');
	SELECT idem_claim('t', 'o', 'leased', '1', lease => '1 day', ttl => '3 days',
			owner => 'worker');
	SELECT idem_claim('t', 'o', 'lapsed', lease => '1 us');
	SELECT idem_complete(idem_claim('t', 'o', 'expired', ttl => '1 us'), '1');
	SELECT idem_define('give up', max_attempts => 1);
	SELECT idem_claim('t', 'give up', 'unknown', lease => '1 us');
	SELECT idem_claim('t', 'give up', 'unknown');

	CREATE TABLE public.orders (tenant text, operation text, key text,
		FOREIGN KEY (tenant, operation, key) REFERENCES idem_record);
	INSERT INTO public.orders SELECT tenant, operation, key FROM idem_record;
END

# All that the tables hold, and all that a user is answered.
my $facts = q{
	SET search_path = "%s";
	SELECT r::text FROM idem_record r ORDER BY tenant, operation, key;
	SELECT p::text FROM idem_policy p ORDER BY operation;
	SELECT idem_replay('t', operation, key, NULL, fingerprint)::text
	FROM idem_record ORDER BY operation, key;
	SELECT outcome FROM idem_replay('t', 'o', 'white space',
		'{"trace": 2, "n": 1.0}');
};

sub facts
{
	my ($database, $schema) = @_;

	return $node->safe_psql($database, sprintf $facts, $schema || 'Odd schema');
}
my $before = facts('source');
like($before, qr/^replay$/m, 'there is something to compare');
cmp_ok(() = $before =~ /^\(replay,/mg, '==', 7, 'seven commands replay');

# Runs a program that must say nothing at all.
sub runs_silently
{
	my ($what, @command) = @_;
	my ($out, $err) = run_command(\@command);

	is($out . $err, '', "$what: no error");
}

sub psql
{
	my ($database, $file) = @_;

	return ('psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-o', "$folder/psql.out",
		'-f', $file, $node->connstr($database));
}

sub is_like_source
{
	my ($database, $without_orders) = @_;

	is(facts($database), $before, "$database: as in the source");
	is($node->safe_psql($database, 'SELECT count(*) FROM public.orders'),
		$node->safe_psql('source', 'SELECT count(*) FROM public.orders'),
		"$database: with the rows that refer to them")
	  unless $without_orders;
}
my @dump = ('pg_dump', '-d', $node->connstr('source'));

# In parallel, pg_restore may check a foreign key before it has filled the table
# of an extension, any extension, that it refers to.
for (
	[ 'plain', ['-Fp'] ],
	[ 'inserts', [ '-Fp', '--inserts' ] ],
	[ 'custom', ['-Fc'], [] ],
	[ 'parallel', [ '-Fc', '-T', 'orders' ], [ '-j', 4 ] ])
{
	my ($database, $dump, $restore) = @$_;
	my $file = "$folder/$database";

	$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE template0");
	runs_silently("$database, dump", @dump, @$dump, '-f', $file);
	runs_silently("$database, restore",
		$restore
		? ('pg_restore', '-e', @$restore, '-d', $node->connstr($database), $file)
		: psql($database, $file));
	is_like_source($database, $database eq 'parallel');
}

# In sections, the data last but before the constraints.
$node->safe_psql('postgres', 'CREATE DATABASE sections TEMPLATE template0');
for my $section (qw(pre-data data post-data))
{
	runs_silently("sections, dump of $section",
		@dump, "--section=$section", '-f', "$folder/$section");
	runs_silently("sections, restore of $section",
		psql('sections', "$folder/$section"));
}
is_like_source('sections');

# Data alone into a database that has the extension already.
$node->safe_psql('postgres', 'CREATE DATABASE data TEMPLATE template0');
$node->safe_psql('data', q{
	CREATE SCHEMA "Odd schema";
	CREATE EXTENSION idempotency SCHEMA "Odd schema";
	CREATE TABLE public.orders (tenant text, operation text, key text);
	CREATE TABLE "Odd schema".answers (LIKE public.orders)});
runs_silently('data, dump', @dump, '--data-only', '--exclude-table=*.answers',
	'-f', "$folder/data.sql");
runs_silently('data, restore', psql('data', "$folder/data.sql"));
is_like_source('data');

# The schema alone has no keys.
$node->safe_psql('postgres', 'CREATE DATABASE schema TEMPLATE template0');
runs_silently('schema, dump', @dump, '--schema-only', '-f', "$folder/schema");
runs_silently('schema, restore', psql('schema', "$folder/schema"));
is($node->safe_psql('schema', q{SELECT
		(SELECT count(*) FROM "Odd schema".idem_record),
		(SELECT count(*) FROM "Odd schema".idem_policy)}),
	'0|0', 'schema: neither records nor policies');

# By hand, into another schema, as text and as binary.
for my $format ('text', 'binary')
{
	$node->safe_psql('postgres', "CREATE DATABASE copy_$format");
	for my $table (qw(idem_policy idem_record))
	{
		$node->safe_psql('source', qq{COPY "Odd schema".$table
			TO '$folder/$table.$format' (FORMAT $format)});
	}
	$node->safe_psql("copy_$format", qq{
		CREATE EXTENSION idempotency;
		COPY idem_record FROM '$folder/idem_record.$format' (FORMAT $format);
		COPY idem_policy FROM '$folder/idem_policy.$format' (FORMAT $format)});
	is(facts("copy_$format", 'public'), $before,
		"COPY as $format, by hand: as in the source");
}

$node->safe_psql('postgres', 'CREATE DATABASE clone TEMPLATE source');
is_like_source('clone');

# A copy works on its own, once it is adopted.
$node->safe_psql('clone', 'SELECT "Odd schema".idem_adopt(nothing_since => true)');
my $take_over = q{SET search_path = "Odd schema"; BEGIN;
	SELECT outcome, attempt FROM idem_claim('t', 'o', 'lapsed'); ROLLBACK};
my $holder = session($node, 'source');
$holder->query_safe(q{SET search_path = "Odd schema";
	BEGIN; SELECT idem_claim('t', 'o', 'lapsed')});
is($node->safe_psql('clone', $take_over), 'resume|2',
	'a claim in the source does not hold the copy');
is($node->safe_psql('source', $take_over), 'in_progress|1',
	'but it holds the source');
$holder->query_safe('ROLLBACK');
$holder->quit;
is(sqlstate($node, 'SELECT 1'), '00000', 'the server is well');

done_testing();
