# Proves that what idem_grant gave, what was granted or revoked by hand, and the
# tenants that a role is bound to are the same after dump and restore, in
# another database and in another cluster.
use strict;
use warnings;

use Idem;
use IdemTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Idem::new_node('grants');
my $folder = PostgreSQL::Test::Utils::tempdir();
my %level = (app => 'client', relay => 'worker', eye => 'monitor',
	ops => 'operator', two => 'client', bound => 'operator');

$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', 'CREATE SCHEMA "Odd schema";
	CREATE EXTENSION idempotency SCHEMA "Odd schema"');
for (sort keys %level)
{
	$node->safe_psql('source', "CREATE ROLE $_ LOGIN;
		SELECT \"Odd schema\".idem_grant('$_', '$level{$_}')");
}
$node->safe_psql('source', <<'END');
	CREATE ROLE auditor LOGIN;
	SET search_path = "Odd schema";
	SELECT idem_grant('two', 'monitor');
	GRANT USAGE ON SCHEMA "Odd schema" TO auditor;
	GRANT SELECT ON idem_event TO auditor;
	REVOKE EXECUTE ON FUNCTION idem_cancel FROM ops;
	GRANT EXECUTE ON FUNCTION idem_fingerprint TO PUBLIC;
	SELECT idem_complete(idem_claim(t, 'o', 'k'), '1') FROM unnest(ARRAY['mine', 'o,"dd', 'yours']) AS t;
	ALTER ROLE bound SET idempotency.allowed_tenants = 'mine, "o,""dd"';
END

# Every right that anybody but the owner has on a member of the extension.
my $rights = <<'END';
	SELECT i.identity, a.grantee::regrole::text, a.privilege_type, a.is_grantable
	FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
	LEFT JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
	LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
	LEFT JOIN pg_type AS t ON d.classid = 'pg_type'::regclass AND t.oid = d.objid,
	pg_identify_object(d.classid, d.objid, 0) AS i,
	aclexplode(coalesce(proacl, relacl, typacl)) AS a
	WHERE e.extname = 'idempotency' AND d.deptype = 'e' AND a.grantee <> e.extowner
	UNION ALL
	SELECT nspname, a.grantee::regrole::text, a.privilege_type, a.is_grantable
	FROM pg_namespace, aclexplode(nspacl) AS a
	WHERE nspname = 'Odd schema' AND a.grantee <> nspowner
	ORDER BY 1, 2, 3
END

sub told
{
	my ($at, $database, $role, $command) = @_;
	my $session = $at->background_psql($database, on_error_stop => 0,
		extra_params => [ '-U', $role ]);

	my $code = sqlstate($session,
		"SET search_path = \"Odd schema\"; SELECT $command");
	$session->quit;
	return $code;
}

sub is_like_source
{
	my ($at, $database, $name) = @_;
	my $facts = $at->safe_psql($database, $rights);

	is($facts, $node->safe_psql('source', $rights), "$name: the same rights");
	for ([ 'app', "idem_claim('mine', 'o', 'k')", '00000' ],
		[ 'app', "idem_recover('w', 1, '1 h')", '42501' ],
		[ 'app', 'count(*) FROM idem_stuck', '42501' ],
		[ 'eye', 'count(*) FROM idem_stuck', '00000' ],
		[ 'eye', "idem_claim('mine', 'o', 'k')", '42501' ],
		[ 'two', 'count(*) FROM idem_stuck', '00000' ],
		[ 'ops', "idem_cancel('mine', 'o', 'k', 'why')", '42501' ],
		[ 'ops', "idem_define('p')", '00000' ],
		[ 'auditor', 'count(*) FROM idem_event', '00000' ],
		[ 'auditor', 'count(*) FROM idem_record', '42501' ],
		[ 'bound', "idem_claim('mine', 'o', 'k')", '00000' ],
		[ 'bound', "idem_claim('o,\"dd', 'o', 'k')", '00000' ],
		[ 'bound', "idem_claim('yours', 'o', 'k')", '42501' ])
	{
		my ($role, $command, $code) = @$_;

		is(told($at, $database, $role, $command), $code, "$name: $role: $command");
	}
}
my $before = $node->safe_psql('source', $rights);
cmp_ok(() = $before =~ /^/mg, '>', 100, 'there is something to compare');
is_like_source($node, 'source', 'source');

sub runs_silently
{
	my ($what, @command) = @_;
	my ($out, $err) = run_command(\@command);

	is($out . $err, '', "$what: no word");
}
my @dump = ('pg_dump', '-d', $node->connstr('source'));
for my $format ('plain', 'custom', 'directory')
{
	my $file = "$folder/$format";

	$node->safe_psql('postgres', "CREATE DATABASE $format");
	runs_silently("dump, $format", @dump, "--format=$format", '-f', $file);
	runs_silently("restore, $format", $format eq 'plain'
		? ('psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-o', "$folder/out", '-f', $file,
			$node->connstr($format))
		: ('pg_restore', '--exit-on-error', '-d', $node->connstr($format), $file));
	is_like_source($node, $format, $format);
}

# Everything, into another cluster, whose sessions do not know the setting yet.
my $other = Idem::new_node('other');
$node->command_ok(
	[ 'pg_dumpall', '-d', $node->connstr('postgres'), '-f', "$folder/all" ],
	'pg_dumpall');
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');
my ($out, $err) = run_command([ 'psql', '-XqAt', '-o', "$folder/out", '-f',
	"$folder/all", $other->connstr('postgres') ]);
is(join("\n", grep { !/role "$superuser" already exists/ } split /\n/, $err),
	'', 'restore of pg_dumpall: no error');
is_like_source($other, 'source', 'another cluster');

done_testing();
