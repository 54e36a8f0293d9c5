# Proves that a copy of a database, by dump and restore or by TEMPLATE, has the
# steps, intents and trail of the original and replays what was completed, but
# hands out nothing and takes nothing over until it is adopted; and that what
# the original may have done since is unknown then, unless nothing ran there
# (cases 26 and 27).
use strict;
use warnings;

use Idem;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Idem::new_node('original');
my $other_node = Idem::new_node('elsewhere');
my $folder = PostgreSQL::Test::Utils::tempdir();

# One command for each state of an intent; what is "late" was never heard of.
$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', <<'END');
	CREATE SCHEMA "Odd schema";
	CREATE EXTENSION idempotency SCHEMA "Odd schema";
	SET search_path = "Odd schema";

	SELECT idem_define('o', steps => '{"one","two, three"}', keep_request => true);
	SELECT idem_define('o', steps => '{"one"}', keep_request => true);
	SELECT idem_define('any');
	SELECT idem_complete(idem_claim('t', 'o', 'done', '1', lease => '1 hour'),
		'{"id" :  1}');
	SELECT idem_cancel('t', 'o', 'cancelled', E'why\t?');
	SELECT idem_release(idem_claim('t', 'any', 'released', lease => '1 hour'), 'not now');
	SELECT idem_unknown(idem_claim('t', 'any', 'lost', lease => '1 hour'), 'cannot tell');
	SELECT idem_claim('t', 'any', 'live', '1', lease => '1 hour');

	SELECT idem_claim('t', 'o', 'lapsed', '{"a": 1}', lease => '1 hour') AS ticket \gset
	SELECT idem_step_done(:'ticket', 'one', E'{"b" :\n 1}', '{"in": "put"}');
	SELECT idem_heartbeat(:'ticket'::idem_ticket, '1 us');

	SELECT idem_intend(idem_claim('t', 'any', key, lease => '1 hour'), 'pay', key,
		'{"amount": 1.0}', send => true, resend_safe_for => '1 hour')
	FROM unnest('{late,confirmed,rejected,unknown,pending,deferred}'::text[]) AS key;
	CREATE TABLE public.tokens AS
	SELECT i.key, i.operation_id, i.token
	FROM unnest('{confirmed,rejected,deferred,unknown,late}'::text[]) AS key,
		idem_dispatch(key, 'w', 1, '1 us') AS i;
	SELECT idem_confirm(operation_id, token, '{"r" :  1}') FROM public.tokens WHERE key = 'confirmed';
	SELECT idem_reject(operation_id, token, 'no', '0') FROM public.tokens WHERE key = 'rejected';
	SELECT idem_defer(operation_id, token, 'busy') FROM public.tokens WHERE key = 'deferred';
	SELECT idem_settle(operation_id, token, 'unclear', '{"asked": 1}')
	FROM idem_reconcile('unknown', 'w', 1, '1 hour');
END

# All that the tables hold, and all that a user is answered.
my $facts = q{
	SET search_path = "Odd schema";
	SELECT r::text FROM idem_record r ORDER BY operation, key;
	SELECT s::text FROM idem_step s ORDER BY key;
	SELECT i::text FROM idem_intent i ORDER BY key;
	SELECT e::text FROM idem_event e ORDER BY id;
	SELECT s::text FROM idem_policy_steps s ORDER BY operation, version;
	SELECT idem_replay('t', 'o', 'done', '1.0')::text;
	SELECT state, next_call FROM idem_stuck ORDER BY key, intent, 1
};
my $before = $node->safe_psql('source', $facts);
like($before, qr/^\(replay,/m, 'there is something to compare');

# The rows that a database has less and more than the original.
sub differences
{
	my ($copy_node, $database) = @_;
	my %lines;

	$lines{$_}-- for split /\n/, $before;
	$lines{$_}++ for split /\n/, $copy_node->safe_psql($database, $facts);
	return join "\n", map { ($lines{$_} < 0 ? '- ' : '+ ') . $_ }
	  grep { $lines{$_} } sort keys %lines;
}

# What each call that hands out or recovers says; nothing that it does is kept.
my $calls = q{
	SET search_path = "Odd schema";
	CREATE FUNCTION pg_temp.code_of(command text) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE command;
		RETURN 'accepted';
	EXCEPTION WHEN OTHERS THEN
		RETURN sqlstate;
	END $$;
	BEGIN;
	SELECT pg_temp.code_of('SELECT idem_require(idem_claim(''t'', ''o'', ''lapsed'', ''{"a": 1}'', lease => ''1 hour''))');
	SELECT pg_temp.code_of('SELECT idem_dispatch(''pending'', ''w'', 10, ''1 hour'')');
	SELECT pg_temp.code_of(format('SELECT idem_send(%L, ''w'', ''1 hour'')', operation_id))
	FROM idem_intent WHERE key = 'deferred';
	SELECT pg_temp.code_of('SELECT idem_reconcile(''late'', ''w'', 10, ''1 hour'')');
	SELECT pg_temp.code_of('SELECT idem_recover(''w'', 10, ''1 hour'')');
	ROLLBACK
};
my $recovered = q{
	SELECT key, outcome, attempt, request, idem_step(t, 'one', '{"in": "put"}')
	FROM idem_recover('w', 10, '1 hour') AS t};

# Restores say nothing at all.
sub runs_silently
{
	my ($what, @command) = @_;
	my ($out, $err) = run_command(\@command);

	is($out . $err, '', "$what: no error");
}

sub check_copy
{
	my ($copy_node, $database) = @_;
	my $name = $copy_node->name . ", $database";
	my $sql = sub { $copy_node->safe_psql($database,
			'SET search_path = "Odd schema";' . join ' ', @_) };

	my $differences = differences($copy_node, $database);

	is($differences, '', "$name: as in the original");
	is($copy_node->safe_psql($database, $calls), join("\n", ('ID006') x 5),
		"$name: hands out nothing, takes nothing over");
	is(differences($copy_node, $database), $differences,
		"$name: and nothing has changed");
	is($sql->(q{SELECT outcome FROM idem_claim('t', 'o', 'cancelled', '2')}),
		'cancelled', "$name: what was cancelled stays so");
	is($sql->(q{SELECT outcome FROM idem_claim('t', 'o', 'new', '1', lease => '1 hour');
			SELECT idem_complete('t', 'o', 'new', token, '1') FROM idem_record WHERE key = 'new';
			SELECT outcome FROM idem_claim('t', 'o', 'new', '1')}),
		"execute\n\nreplay", "$name: new commands run");
	return ($name, $sql);
}

# The original may have gone on.
sub check_adopted
{
	my ($copy_node, $database) = @_;
	my ($name, $sql) = check_copy($copy_node, $database);

	$sql->('SELECT idem_adopt()');
	is($copy_node->safe_psql($database, $calls),
		join("\n", 'ID424', ('accepted') x 4), "$name: adopted, it does");
	is($sql->(q{SELECT key, from_state, to_state FROM idem_event
			WHERE reason LIKE '%copy%' AND intent IS NULL ORDER BY key}),
		join("\n", map { "$_|processing|unknown" }
			  qw(confirmed deferred lapsed late live pending rejected unknown)),
		"$name: what was under way is unknown");
	is($sql->(q{SELECT key, from_state, to_state FROM idem_event
			WHERE reason LIKE '%copy%' AND intent = 'pay' ORDER BY key}),
		"deferred|pending|unknown\nlate|in_flight|unknown\npending|pending|unknown",
		"$name: so are its intents");
	is($sql->(q{SELECT key FROM idem_dispatch('pending', 'w', 10, '1 hour');
			SELECT key FROM idem_recover('w', 10, '1 hour')}),
		'', "$name: nothing is sent or run by itself");
	is($sql->(q{SELECT key, operation_id = idem_operation_id('t', 'any', key, 'pay')
			FROM unnest('{deferred,late,pending,unknown}'::text[]) AS target, idem_reconcile(target, 'w', 10, '1 hour')}),
		"deferred|t\nlate|t\npending|t\nunknown|t",
		"$name: they are asked about, under the same operation ids");
	$sql->(q{SELECT idem_settle(operation_id, token, 'absent', '{}') FROM idem_intent WHERE key = 'pending';
			SELECT idem_settle(operation_id, token, 'happened', '{}') FROM idem_intent WHERE key IN ('late', 'deferred')});
	is($sql->(q{SELECT name FROM idem_dispatch('pending', 'w', 10, '1 hour')}),
		'pay', "$name: what did not happen is sent");
	is($sql->(q{SELECT state FROM idem_record WHERE key IN ('late', 'deferred')}),
		"unknown\nunknown", "$name: settled intents alone do not release a command");
	$sql->(q{SELECT idem_resolve('t', 'o', 'lapsed', 'released', 'nothing was done since')});
	is($sql->($recovered), qq{lapsed|resume|2|{"a": 1}|(t,"{""b"" :\n 1}")},
		"$name: a decision does, and its steps are there");
}

# The original was stopped before, and nothing has run there since.
sub check_moved
{
	my ($copy_node, $database) = @_;
	my ($name, $sql) = check_copy($copy_node, $database);
	my $copied = $copy_node->safe_psql($database, $facts);

	$sql->('SELECT idem_adopt(nothing_since => true)');
	is($copy_node->safe_psql($database, $facts), $copied,
		"$name: all goes on as it was");
	is($sql->(q{SELECT name FROM idem_dispatch('pending', 'w', 10, '1 hour')}),
		'pay', "$name: what was pending is sent");
	is($sql->($recovered), qq{lapsed|resume|2|{"a": 1}|(t,"{""b"" :\n 1}")},
		"$name: what lapsed is recovered, with its steps");
}

# By TEMPLATE, within the cluster.
$node->safe_psql('postgres', 'CREATE DATABASE template_copy TEMPLATE source');
check_adopted($node, 'template_copy');
$node->safe_psql('postgres', 'CREATE DATABASE template_moved TEMPLATE source');
check_moved($node, 'template_moved');

# By dump and restore, there and in another cluster.
my @dump = ('pg_dump', '-d', $node->connstr('source'), '-T', 'tokens');
for (
	[ 'plain', $node, ['-Fp'] ],
	[ 'inserts', $node, [ '-Fp', '--inserts' ] ],
	[ 'parallel', $node, ['-Fc'], [ '-j', 2 ] ],
	[ 'custom', $other_node, ['-Fc'], [] ])
{
	my ($database, $target, $dump, $restore) = @$_;
	my $file = "$folder/$database";

	$target->safe_psql('postgres', "CREATE DATABASE $database TEMPLATE template0");
	runs_silently("$database, dump", @dump, @$dump, '-f', $file);
	runs_silently("$database, restore",
		$restore
		? ('pg_restore', @$restore, '-d', $target->connstr($database), $file)
		: ('psql', '-XqAt', '-o', "$folder/psql.out", '-f', $file,
			$target->connstr($database)));
	($database eq 'parallel' ? \&check_moved : \&check_adopted)->($target, $database);
}

# A copy of an adopted copy is a copy again; the original never was one.
$node->safe_psql('postgres', 'CREATE DATABASE second TEMPLATE template_copy');
is($node->safe_psql('second', $calls), join("\n", 'ID409', ('ID006') x 4),
	'a copy of an adopted copy is a copy');
is($node->safe_psql('template_copy', $calls),
	join("\n", 'ID409', 'accepted', 'ID003', 'accepted', 'accepted'),
	'the adopted copy is not');
is(differences($node, 'source'), '', 'the original is as it was');
is($node->safe_psql('source', $calls), join("\n", ('accepted') x 5),
	'and goes on');
is($node->safe_psql('source', q{SELECT count("Odd schema".idem_confirm(operation_id, token))
		FROM tokens WHERE key = 'late'}), 1, 'also with what it had in flight');

# Nothing of this in a dump of the schema alone.
my $file = "$folder/schema";
runs_silently('schema, dump', @dump, '--schema-only', '-f', $file);
unlike(slurp_file($file), qr/amount|cannot tell|not now/, 'no data in a schema dump');

done_testing();
