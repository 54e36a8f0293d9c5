# Proves that DROP EXTENSION and CREATE EXTENSION, also in another schema, are
# safe in living sessions: those that used the extension before go on with the
# new one, and a claim that is open across it loses nothing silently.
use strict;
use warnings;

use Idem;
use IdemTest;
use Test::More;

my $node = Idem::new_node('drop');
$node->safe_psql('postgres', q{
	CREATE SCHEMA a;
	CREATE SCHEMA b;
	CREATE TABLE effects (what text);
	CREATE EXTENSION idempotency SCHEMA a});

my $old = session($node);
my $path = 'SET search_path = a, b, public';
$old->query_safe($path);

my $claim = q{SELECT idem_complete(idem_claim('t', 'o', 'k', '1'), '1')};
my $replay = q{SELECT outcome FROM idem_replay('t', 'o', 'k', '1')};

# Everything that a session may keep: catalogue, policies, plans.
$old->query_safe(qq{
	CREATE FUNCTION pg_temp.call() RETURNS text LANGUAGE plpgsql AS
		\$\$ BEGIN RETURN (idem_replay('t', 'o', 'k', '1')).outcome; END \$\$;
	PREPARE ask AS $replay;
	SELECT idem_define('o', max_attempts => 7, max_lease => '1 hour');
	$claim});
is($old->query_safe($_), 'replay', "before: $_")
  for $replay, 'EXECUTE ask', 'SELECT pg_temp.call()';

for my $where ('b', 'a', 'a')
{
	$node->safe_psql('postgres', 'DROP EXTENSION idempotency');
	is(sqlstate($old, $replay), '42883', 'after DROP: no such function');

	$node->safe_psql('postgres', "CREATE EXTENSION idempotency SCHEMA $where");
	is($old->query_safe($_), 'absent', "again in $where: $_")
	  for $replay, 'EXECUTE ask', 'SELECT pg_temp.call()';
	is($old->query_safe(
			q{BEGIN; SELECT outcome FROM idem_claim('t', 'o', 'k', '1',
				lease => '2 hours'); ROLLBACK}),
		'execute', "again in $where: the old policy is forgotten");
	$old->query_safe($claim);
	is($old->query_safe($_), 'replay', "again in $where, completed: $_")
	  for $replay, 'EXECUTE ask', 'SELECT pg_temp.call()';
	is($node->safe_psql('postgres', "SELECT count(*) FROM $where.idem_record"),
		1, "again in $where: the record is there");
}

# The same within one session, in one transaction too.
my $sole = session($node);
$sole->query_safe($path);
$sole->query_safe(qq{
	BEGIN;
	SELECT idem_complete(idem_claim('t', 'o', 'dropped'));
	DROP EXTENSION idempotency;
	CREATE EXTENSION idempotency SCHEMA b;
	$claim;
	DROP EXTENSION idempotency;
	CREATE EXTENSION idempotency SCHEMA a;
	$claim;
	COMMIT});
is($sole->query_safe('SELECT string_agg(key, \',\') FROM a.idem_record'),
	'k', 'one session: all happens in the last one');
$sole->query_safe(q{BEGIN; DROP EXTENSION idempotency; ROLLBACK});
is($sole->query_safe($replay), 'replay', 'one session: DROP rolled back');
is($old->query_safe($replay), 'replay', 'and nothing changed for the others');

# An open claim keeps others from dropping.
$old->query_safe(q{
	BEGIN;
	INSERT INTO effects VALUES ('open');
	SELECT token FROM idem_claim('t', 'o', 'open')
	\gset});
is(sqlstate($node, q{SET lock_timeout = '50 ms'; DROP EXTENSION idempotency}),
	'55P03', 'another session cannot drop under an open claim');
$old->query_safe(q{SELECT idem_complete('t', 'o', 'open', :token); COMMIT});

# Its own session can: the claim is then unfinished, or finds its new table.
is(sqlstate($sole, q{
		BEGIN;
		INSERT INTO effects VALUES ('unfinished');
		SELECT idem_claim('t', 'o', 'unfinished');
		DROP EXTENSION idempotency;
		COMMIT}), 'ID001', 'dropped under its own open claim: refused');
is($sole->query_safe($replay), 'replay', 'so it is not dropped');
$sole->query_safe(q{
	BEGIN;
	INSERT INTO effects VALUES ('moved');
	SELECT token FROM idem_claim('t', 'o', 'moved')
	\gset
	DROP EXTENSION idempotency;
	CREATE EXTENSION idempotency SCHEMA b;
	SELECT idem_complete('t', 'o', 'moved', :token, '1');
	COMMIT});
is($old->query_safe(q{SELECT outcome FROM idem_replay('t', 'o', 'moved')}),
	'replay', 'recreated under its own open claim: completed in the new one');
is($node->safe_psql('postgres', 'SELECT what FROM effects'),
	"open\nmoved", 'effects agree');

# What cannot be done.
is(sqlstate($node, 'ALTER EXTENSION idempotency SET SCHEMA a'),
	'0A000', 'SET SCHEMA is refused');
$node->safe_psql('postgres', q{
	CREATE TABLE references_it (tenant text, operation text, key text,
		FOREIGN KEY (tenant, operation, key) REFERENCES b.idem_record)});
is(sqlstate($node, 'DROP EXTENSION idempotency'),
	'2BP01', 'DROP is refused while a table depends on it');
is(sqlstate($node, 'DROP TABLE b.idem_record CASCADE'),
	'2BP01', 'no part can be dropped alone');
is(sqlstate($node, 'DROP EXTENSION idempotency CASCADE'),
	'00000', 'DROP CASCADE works');
is($node->safe_psql('postgres', q{
		SELECT count(*) FROM references_it;
		SELECT count(*) FROM pg_class WHERE relname ~ '^idem_'}),
	"0\n0", 'and takes no table of the application with it');

$_->quit for $old, $sole;
done_testing();
