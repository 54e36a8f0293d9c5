# Proves that no table of the extension is forgotten in a dump, whatever its
# form: parallel and in stages, with a foreign key of the application, over what
# was there, into another schema by hand.  Every row is back, every life is told
# as before, grants too, and the copy is fenced (cases 26 and 27).
use strict;
use warnings;

use Idem;
use IdemTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Idem::new_node('dump_all');
my $folder = PostgreSQL::Test::Utils::tempdir();
my $path = 'SET search_path = "Odd schema"';
my $create = 'CREATE SCHEMA "Odd schema"; CREATE EXTENSION idempotency SCHEMA "Odd schema"';

$node->safe_psql('postgres', 'CREATE DATABASE source; CREATE ROLE app');
$node->safe_psql('source', <<"END");
	$create;
	$path;
	SELECT idem_define('o', ttl => '7 days', steps => '{reserve,pay}', comment => E'two\\nlines');
	SELECT idem_define('any', max_attempts => 5);
	SELECT idem_complete(idem_claim('t', 'any', 'done', '{"a": 1}'), E'{"id" :\\n 1}', 201);
	SELECT idem_claim('t', 'o', 'live', '1', lease => '1 day', owner => 'w') AS ticket \\gset
	SELECT idem_step_done(:'ticket', 'reserve', '{"shelf" :  7}', '{"in": "put"}');
	SELECT operation_id FROM idem_intend(:'ticket', 'pay', 'bank', '{"amount": 1.0}') \\gset
	SELECT idem_send(:'operation_id', 'w', '1 hour');
	SELECT idem_claim('t', 'any', 'lapsed', lease => '1 us');
	SELECT idem_release(idem_claim('t', 'any', 'released', lease => '1 hour'), E'why\\t?');
	SELECT idem_cancel('t', 'any', 'cancelled', 'why');
	CREATE TABLE public.orders (tenant text, operation text, key text,
		FOREIGN KEY (tenant, operation, key) REFERENCES idem_record);
	INSERT INTO public.orders SELECT tenant, operation, key FROM idem_record;
	GRANT USAGE ON SCHEMA "Odd schema" TO app;
	GRANT EXECUTE ON FUNCTION idem_replay TO app;
	GRANT SELECT ON idem_event TO app;
END

# Every table that is the extension's, whatever they may be.
my @tables = split /\n/, $node->safe_psql('source', q{
	SELECT relname FROM pg_class JOIN pg_depend ON objid = pg_class.oid AND deptype = 'e'
	JOIN pg_extension e ON refobjid = e.oid
	WHERE extname = 'idempotency' AND relkind = 'r' ORDER BY 1});
cmp_ok(scalar @tables, '>', 5, 'there are tables');

# Its own origin, which CREATE EXTENSION writes, apart.
sub rows
{
	my ($database, $schema) = @_;

	return join "\n", $node->safe_psql($database, join ';', qq{SET search_path = "$schema"},
		(map { "SELECT '$_', r::text FROM $_ r ORDER BY r::text" } grep { $_ ne 'idem_origin' } @tables),
		q{SELECT h::text FROM idem_record r, idem_history(tenant, operation, key) AS h ORDER BY r.key, h.at, h::text},
		q{SELECT r::text FROM idem_replay('t', 'any', 'done', '{"a": 1.0}') AS r},
		q{SELECT last_value FROM idem_event_id_seq});
}
my $before = rows('source', 'Odd schema');
like($before, qr/^\Q$_\E\|/m, "the source has rows in $_") for grep { $_ ne 'idem_origin' } @tables;
like($before, qr/^\(replay,/m, 'and replays');

sub runs_silently
{
	my ($what, @command) = @_;
	my ($out, $err) = run_command(\@command);

	is($out . $err, '', "$what: no error");
}

sub is_like_source
{
	my ($database, $schema) = @_;
	my $session = session($node, $database);
	my $tables = join ',', map { "('$_')" } @tables;

	is(rows($database, $schema), $before, "$database: every row, and every life");
	$session->query_safe(qq{SET search_path = "$schema"});
	is(sqlstate($session, $_), 'ID006', "$database, a copy: $_")
	  for q{SELECT idem_recover('w', 1, '1 hour')}, q{SELECT idem_dispatch('bank', 'w', 1, '1 hour')};
	$session->query_safe('BEGIN');
	is($session->query_safe(q{SELECT outcome FROM idem_claim('t', 'any', 'new');
			SELECT idem_release(t.tenant, t.operation, t.key, t.token) FROM idem_claim('t', 'any', 'second') AS t}),
		"execute\n", "$database: new commands run");
	$session->query_safe('ROLLBACK');
	$session->quit;
}

sub create_database
{
	my ($database) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE template0");
	return $node->connstr($database);
}
my @dump = ('pg_dump', '-d', $node->connstr('source'));
my $rights = q{SELECT string_agg(format('%s %s', o, r), ';' ORDER BY o, r) FROM (
	SELECT oid::regprocedure::text AS o, proacl::text AS r FROM pg_proc WHERE proacl::text LIKE '%app=%'
	UNION ALL SELECT oid::regclass::text, relacl::text FROM pg_class WHERE relacl::text LIKE '%app=%') AS a};

# In parallel, both ways.  The foreign key goes last: pg_restore does not know
# that it needs the rows of an extension's table.
my $target = create_database('stages');
runs_silently('directory, dump', @dump, '-Fd', '-j', 2, '-f', "$folder/directory");
runs_silently("stages, $_", 'pg_restore', '-e', '-j', 4, "--section=$_", '-d', $target, "$folder/directory")
  for qw(pre-data data post-data);
is_like_source('stages', 'Odd schema');
is($node->safe_psql('stages', 'SELECT count(*) FROM orders'),
	$node->safe_psql('source', 'SELECT count(*) FROM orders'), 'stages: with the rows that refer to them');
is($node->safe_psql('stages', $rights), $node->safe_psql('source', $rights), 'stages: with the rights');
like($node->safe_psql('stages', $rights), qr/idem_replay.*app=X.*idem_event.*app=r|idem_event.*app=r.*idem_replay.*app=X/,
	'which are there');

# Over a database that has other rows, which are gone then.
$target = create_database('over');
$node->safe_psql('over', qq{$create; $path; SELECT idem_cancel('t', 'any', 'done', 'why')});
runs_silently('over, dump', @dump, '-Fc', '--clean', '--if-exists', '-f', "$folder/custom");
runs_silently('over, restore', 'pg_restore', '-e', '--clean', '--if-exists', '-d', $target, "$folder/custom");
is_like_source('over', 'Odd schema');

# Over the database that it was made of: what was done since is not known here.
$target = create_database('home');
my $recover = q{SELECT idem_recover('w', 1, '1 hour')};
$node->safe_psql('home', q{CREATE EXTENSION idempotency; SELECT idem_claim('t', 'o', 'k', lease => '1 us')});
runs_silently('home, dump', 'pg_dump', '-d', $target, '-Fc', '-f', "$folder/home");
is($node->safe_psql('home', 'SELECT idem_is_copy()'), 'f', 'home: no copy so far');
runs_silently('home, restore', 'pg_restore', '-e', '--clean', '--if-exists', '-d', $target, "$folder/home");
is(($node->psql('home', $recover))[2] =~ /this database is a copy/, 1, 'home: a copy of an earlier time');
is($node->safe_psql('home', "SELECT idem_adopt(nothing_since => true); SELECT (idem_recover('w', 1, '1 hour')).key"),
	"\nk", 'home: adopted');

# Into another schema: nothing but COPY can do it.
$target = create_database('other');
$node->safe_psql('other', 'CREATE EXTENSION idempotency');
for (@tables)
{
	$node->safe_psql('source', qq{COPY "Odd schema".$_ TO '$folder/$_'});
	$node->safe_psql('other', "COPY $_ FROM '$folder/$_'");
}
$node->safe_psql('other', q{SELECT setval('idem_event_id_seq', (SELECT max(id) FROM idem_event))});
is_like_source('other', 'public');

# Neither keys nor anything else in the schema alone.
$target = create_database('schema_only');
runs_silently('schema, dump', @dump, '--schema-only', '-f', "$folder/schema.sql");
runs_silently('schema, restore', 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-o', "$folder/out", '-f',
	"$folder/schema.sql", $target);
is($node->safe_psql('schema_only', "$path; " . join ' UNION ALL ', map { "SELECT '$_' FROM $_" } @tables),
	'idem_origin', 'schema: no row but that of this database');
unlike(slurp_file("$folder/schema.sql"), qr/reserve|shelf|amount|lapsed/, 'schema: and no word of them in the file');

# What cannot be done, in the application's own way.
$node->safe_psql('source', 'CREATE TABLE public.kept (t "Odd schema".idem_ticket)');
for my $dependent ('TABLE public.orders', 'TABLE public.kept')
{
	my ($status, undef, $message) = $node->psql('source', 'DROP EXTENSION idempotency');
	like($message, qr/other objects depend on it/, "DROP EXTENSION is refused while $dependent depends on it");
	$node->safe_psql('source', "DROP $dependent");
}
is(($node->psql('source', 'ALTER EXTENSION idempotency SET SCHEMA public'))[2] =~ /does not support SET SCHEMA/, 1,
	'SET SCHEMA is refused');
is(rows('source', 'Odd schema'), $before, 'and all is as it was');

done_testing();
