# Proves that a login role bound by idempotency.allowed_tenants stays bound
# whatever it does with its connection: options of the startup packet, SET
# before and after the library is loaded, RESET, DISCARD, ALTER ROLE and ALTER
# DATABASE, parallel workers; with the library loaded by the first call, with
# the session, or with the server.  A value that was refused allows nothing.
use strict;
use warnings;

use Idem;
use IdemTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Idem::new_node('tenants', start => 0);
$node->append_conf('postgresql.conf', "include 'load.conf'");

sub configure
{
	my ($load, @lines) = @_;

	unlink $node->data_dir . '/load.conf';
	$node->append_conf('load.conf', join('', map { "$_\n" }
		($load ? "$load = 'idempotency'" : ()), @lines));
}
configure('');
$node->start;
$node->safe_psql('postgres', <<'END');
	CREATE EXTENSION idempotency;
	SELECT idem_complete(idem_claim(t, 'o', 'k', '1'), '"secret"')
	FROM unnest('{mine,yours}'::text[]) AS t;
	SELECT outcome FROM idem_claim('yours', 'o', 'lapsed', lease => '1 us');
	CREATE ROLE bound LOGIN;
	CREATE ROLE owner LOGIN;
	CREATE ROLE free LOGIN;
	SELECT idem_grant('bound', 'operator'), idem_grant('owner', 'client'),
		idem_grant('free', 'client');
	GRANT CREATE ON SCHEMA public TO bound;
	ALTER ROLE bound SET idempotency.allowed_tenants = 'mine';
	ALTER ROLE owner SET idempotency.allowed_tenants = 'mine';
	CREATE DATABASE owned OWNER owner;
END
$node->safe_psql('owned', 'CREATE EXTENSION idempotency;
	SELECT idem_grant(\'owner\', \'client\')');

my $superuser = $node->safe_psql('postgres', 'SELECT current_user');
my $mine = q{SELECT outcome FROM idem_replay('mine', 'o', 'k', '1')};
my $yours = q{SELECT outcome FROM idem_replay('yours', 'o', 'k', '1')};
my $set = 'SET idempotency.allowed_tenants';

# What a new session is told about both when it runs these statements first;
# psql goes on after an error.
sub told
{
	my ($options, $first, $role, $database) = @_;
	my ($out, $err);

	$role ||= 'bound';
	$database ||= 'postgres';
	$first =~ s/;?\s*$/;/ if $first ne '';
	local $ENV{PGOPTIONS} = $options;
	run_as($role, $database,
		"$first\n\\echo ->\n$mine;\n\\echo :SQLSTATE\n$yours;\n\\echo :SQLSTATE\n",
		\$out, \$err);
	return 'no connection' if $out !~ /->/;
	$out =~ s/.*->\n//s;
	$out =~ s/\n/ /g;
	$out =~ s/ $//;
	return $out;
}

sub run_as
{
	my ($role, $database, $sql, $out, $err) = @_;
	my $file = $node->basedir . '/run_as.sql';

	# from a file: where the connection is refused nobody reads a pipe
	open(my $script, '>', $file) or die "$file: $!";
	print $script $sql;
	close($script) or die "$file: $!";
	IPC::Run::run(['psql', '-XAtq', '-d', $node->connstr($database), '-U', $role, '-f', $file],
		'>', $out, '2>', $err);
}
my $right = 'replay 00000 42501';
my $nothing = '42501 42501';

for my $load ('', 'session_preload_libraries', 'shared_preload_libraries')
{
	my $name = $load || 'loaded by a call';

	configure($load);
	$node->restart;

	is(told('', ''), $right, "$name: as it is");
	my %attempts = (
		'SET before' => "$set = '*'",
		'SET before, another' => "$set = 'yours'",
		'SET before, malformed' => "$set = '\"'",
		'set_config before' =>
		  q{SELECT set_config('idempotency.allowed_tenants', '*', false)},
		'SET to default before' => "$set TO DEFAULT",
		'SET and RESET before' => "$set = '*'; RESET idempotency.allowed_tenants",
		'SET twice and RESET ALL before' => "$set = 'a'; $set = '*'; RESET ALL",
		'SET and DISCARD ALL before' => "$set = '*'; DISCARD ALL",
		'SET in another case' => 'SET "Idempotency.Allowed_Tenants" = \'*\'',
		'SET after' => "$mine; $set = '*'",
		'RESET ALL after' => "$mine; RESET ALL",
		'DISCARD ALL after' => "$mine; DISCARD ALL",
		'RESET after' => "$mine; RESET idempotency.allowed_tenants",
		'SET before, and RESET after' =>
		  "$set = '*'; $mine; RESET ALL; DISCARD ALL",
		'ALTER ROLE before' =>
		  "ALTER ROLE bound SET idempotency.allowed_tenants = '*'",
		'ALTER ROLE after' =>
		  "$mine; ALTER ROLE bound SET idempotency.allowed_tenants = '*'",
		'ALTER ROLE RESET' =>
		  'ALTER ROLE bound RESET idempotency.allowed_tenants',
		'ALTER ROLE RESET ALL' => 'ALTER ROLE bound RESET ALL',
		'ALTER ROLE RESET ALL after' => "$mine; ALTER ROLE bound RESET ALL",
		'ALTER ROLE IN DATABASE' => 'ALTER ROLE bound IN DATABASE postgres'
		  . " SET idempotency.allowed_tenants = '*'",
		'SET clause' => 'CREATE FUNCTION f() RETURNS text LANGUAGE sql'
		  . " SET idempotency.allowed_tenants = '*' AS \$\$ $yours \$\$",
		'LOAD' => "$set = '*'; LOAD 'idempotency'; RESET ALL");
	is(told('', $attempts{$_}), $right, "$name: $_") for sort keys %attempts;
	is(told('', ''), $right, "$name: nothing has stuck");

	# within a transaction that a rollback takes back
	for my $end ('COMMIT', 'ROLLBACK', 'ROLLBACK TO s; COMMIT')
	{
		is(told('', "BEGIN; SAVEPOINT s; SET LOCAL idempotency.allowed_tenants = '*';"
				. " $mine; $end"), $right, "$name: SET LOCAL, load, $end");
	}
	is(told('', "BEGIN; SET LOCAL idempotency.allowed_tenants = '*';"
			. " SAVEPOINT s; $set = 'yours'"),
		$load ? '25P02 25P02' : $right,
		"$name: in an open transaction");

	# options of the connection go before those of the role
	for my $value ('*', 'yours', 'mine,yours', '"')
	{
		my $option = "-c idempotency.allowed_tenants=$value";

		for ('', 'RESET ALL', 'DISCARD ALL', "$mine; RESET ALL")
		{
			my $told = told($option, $_);

			like($told, qr/^(\Q$right\E|\Q$nothing\E|no connection)$/,
				"$name: $option, $_");
		}
	}
	# what is malformed, in the catalogue or the file, allows nothing
	$node->safe_psql('postgres', <<'END');
	UPDATE pg_db_role_setting SET setconfig = '{"idempotency.allowed_tenants=mine,"}'
	WHERE setrole = 'bound'::regrole
END
	is(told('', ''), $nothing, "$name: malformed for the role");
	is(told('', 'RESET ALL'), $nothing, "$name: malformed, RESET ALL");
	$node->safe_psql('postgres', <<'END');
	UPDATE pg_db_role_setting SET setconfig = '{idempotency.allowed_tenants=mine}'
	WHERE setrole = 'bound'::regrole
END
	configure($load, q{idempotency.allowed_tenants = '"'});
	$node->restart;
	is(told('', '', 'free'), $nothing, "$name: malformed in the file");
	configure($load, q{idempotency.allowed_tenants = 'mine'});
	$node->reload;
	is(told('', '', 'free'), $right, "$name: a good one in the file");
	unlike(told('-c idempotency.allowed_tenants=*', 'RESET ALL', 'free'),
		qr/00000$/, "$name: options against the file");
	configure($load);
	$node->restart;

	# a value that is good, but set by a superuser's connection, narrows
	is(told('-c idempotency.allowed_tenants=mine', '', $superuser),
		$right, "$name: an option of a superuser");
}

configure('');
$node->restart;

# The owner of a database cannot widen what its roles may.
my $owned = session($node, 'owned');
$owned->query('SET SESSION AUTHORIZATION owner');
for my $when ('before', 'after')
{
	for ("ALTER DATABASE owned SET idempotency.allowed_tenants = '*'",
		'ALTER ROLE owner IN DATABASE owned SET idempotency.allowed_tenants = \'*\'')
	{
		is(sqlstate($owned, $_), '42501', "$when the load: $_");
	}
	is(sqlstate($owned, "SELECT idem_replay('yours', 'o', 'k')"), '42501',
		"$when: still bound");
}
$owned->quit;

# A view that parallel workers read.
my $parallel = q{
	SET force_parallel_mode = on; SET parallel_setup_cost = 0;
	SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
	SET enable_bitmapscan = off; SET enable_indexscan = off;
	SELECT count(*) FILTER (WHERE tenant = 'yours'), count(*) FROM idem_stuck};
$parallel =~ s/force_parallel_mode/debug_parallel_query/
  if $node->pg_version >= 16;
like($node->safe_psql('postgres', "$parallel"), qr/^1\|1$/m,
	'a superuser sees what is stuck');
for my $options ('', '-c idempotency.allowed_tenants=*')
{
	my $out;
	my $sql = "$parallel;\nEXPLAIN (COSTS OFF) SELECT * FROM idem_stuck;\n";

	local $ENV{PGOPTIONS} = $options;
	run_as('bound', 'postgres', $sql, \$out, \my $err);
	like($out, qr/^0\|0$/m, "parallel workers: bound, '$options'");
	like($out, qr/Workers Planned/, 'in parallel');
}

# A change counts from the next session on.
my $old = session($node);
$old->query("SET SESSION AUTHORIZATION bound");
is(sqlstate($old, $mine), '00000', 'before the change');
$node->safe_psql('postgres',
	"ALTER ROLE bound SET idempotency.allowed_tenants = 'yours'");
is(sqlstate($old, $mine), '00000', 'a living session keeps what it had');
$old->quit;
is(told('', ''), '42501 replay 00000', 'the next one follows');

done_testing();
