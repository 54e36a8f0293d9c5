# Proves that each older version, with data in it and sessions open, upgrades to
# what a fresh installation is, catalogue by catalogue; that its data are
# answered as before and the grants of the user stay, also through a dump; and
# that what cannot be upgraded stays as it was (case 31).
use strict;
use warnings;

use Idem;
use IdemTest;
use IdemUpgrade;
use PostgreSQL::Test::Utils;
use Test::More;

my $folder = extension_copy()
  or plan skip_all => 'the extension is not in a folder of its own';
my $scratch = PostgreSQL::Test::Utils::tempdir();
my ($present) = scripts($folder);

# 0.9 was never released: it keeps the machinery tested until something is.
add_script($folder, "$upgrade/idempotency--0.9.sql", 'idempotency--0.9.sql');
my ($script, $by_hand) = run_command(
	[ "$upgrade/../../src/upgrade/draft", "$upgrade/idempotency--0.9.sql",
		$present, "$upgrade/before.sql", "$upgrade/after.sql" ]);
note($by_hand);
append_to_file("$scratch/script", "$script\n");
add_script($folder, "$scratch/script", "idempotency--0.9--$version.sql");

my $node = Idem::new_node('upgrade');
$node->safe_psql('postgres',
	'CREATE ROLE app; CREATE ROLE auditor; CREATE DATABASE fresh');
my $path = 'SET search_path = "Odd schema"';
my $create = 'CREATE SCHEMA "Odd schema"; CREATE EXTENSION idempotency SCHEMA "Odd schema"';
$node->safe_psql('fresh', $create);
my @fresh = catalog($node, 'fresh');
cmp_ok(scalar @fresh, '>', 500, 'a fresh installation has many facts');

# What a user may have done to rights; the second is a right less.
my $grants = q{
	GRANT EXECUTE ON FUNCTION idem_replay(text, text, text, jsonb, bytea) TO app;
	REVOKE EXECUTE ON FUNCTION idem_hold(idem_ticket) FROM CURRENT_USER;
	GRANT EXECUTE ON FUNCTION idem_fingerprint(jsonb, text[]) TO PUBLIC;
	GRANT EXECUTE ON FUNCTION idem_require TO app WITH GRANT OPTION;
	GRANT SELECT ON idem_record TO auditor;
	GRANT SELECT (operation) ON idem_policy TO auditor};
# The rows that an old version wrote, its columns alone.
my %columns = map { $_ => undef } qw(idem_record idem_policy idem_step idem_intent idem_event idem_origin);

sub rows
{
	my ($database) = @_;

	return join "\n", map {
		my $columns = $columns{$_} ||= $node->safe_psql($database, qq{
			SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum)
			FROM pg_attribute WHERE attrelid = '"Odd schema".$_'::regclass AND attnum > 0});
		$node->safe_psql($database,
			qq{SELECT $columns FROM "Odd schema".$_ ORDER BY ($columns)::text})
	} sort keys %columns;
}

for my $file (scripts($folder))
{
	next if $file eq $present;
	my ($old) = $file =~ /idempotency--(.*)\.sql$/;
	my $sql = sub { $node->safe_psql("from $old", "$path; $_[0]") };

	# Every C function that the old script names is still in the library.
	$node->safe_psql('postgres', qq{CREATE DATABASE "from $old"});
	$node->safe_psql("from $old", "$create VERSION '$old'");
	$sql->(slurp_file("$upgrade/$old.sql"));
	my @bare = catalog($node, "from $old");
	$sql->($grants);
	my $granted = difference(\@bare, [ catalog($node, "from $old") ]);
	cmp_ok(scalar(split /\n/, $granted), '==', 6, "$old: rights were changed");
	%columns = map { $_ => undef } keys %columns;
	my $rows = rows("from $old");

	# Sessions that have used it, one of them in a transaction.
	my ($idle, $busy) = map { session($node, "from $old") } 1 .. 2;
	my $replay = q{SELECT outcome, response::text FROM idem_replay('t', 'o', 'failed')};
	$_->query_safe("$path; PREPARE ask AS $replay;
		CREATE FUNCTION pg_temp.ask() RETURNS text LANGUAGE plpgsql AS
		\$\$ BEGIN RETURN (idem_replay('t', 'o', 'failed')).outcome; END \$\$")
	  for $idle, $busy;
	is(sqlstate($idle, $_), '55000', "$old: not with this library: $_")
	  for 'EXECUTE ask', 'SELECT pg_temp.ask()', q{SELECT idem_claim('t', 'o', 'new')},
	  q{UPDATE idem_policy SET comment = 'x'};
	$busy->query_safe('BEGIN; SELECT count(*) FROM idem_record');
	my $update = 'ALTER EXTENSION idempotency UPDATE';
	is(sqlstate($idle, "SET lock_timeout = '50 ms'; $update"), '55P03',
		"$old: a transaction that uses it keeps the upgrade out");
	$busy->query_safe('COMMIT');

	# Something in the way: refused, and as it was.
	$sql->('CREATE TABLE idem_policy_steps (a int)');
	is(sqlstate($idle, "SET lock_timeout = 0; $update"), '42P07',
		"$old: no object of the user is adopted");
	$sql->('DROP TABLE idem_policy_steps');
	is(difference([ sort split /\n/, $rows ], [ sort split /\n/, rows("from $old") ]), '',
		"$old: the rows are as before the failed upgrade");
	is(difference(\@bare, [ catalog($node, "from $old") ]), $granted,
		"$old: and so are the catalogues");

	is($busy->query_safe("$update; SHOW search_path"), '"Odd schema"',
		"$old: upgraded, the session is as it was");
	is(difference(\@fresh, [ catalog($node, "from $old") ]), $granted,
		"$old: as a fresh installation, but for the rights that the user gave");
	is(difference([ sort split /\n/, $rows ], [ sort split /\n/, rows("from $old") ]), '',
		"$old: the rows are as before");
	for ($idle, $busy)
	{
		is($_->query_safe('EXECUTE ask'), 'replay|"no"', "$old: an open session goes on");
		is($_->query_safe('SELECT pg_temp.ask()'), 'replay', "$old: its function too");
		$_->quit;
	}

	# A dump of it restores on a fresh installation, rights and all.
	my ($out, $err) = run_command([ 'pg_dump', '-d', $node->connstr("from $old"),
			'-f', "$scratch/dump" ]);
	is($out . $err, '', "$old: dumped");
	$node->safe_psql('postgres', qq{CREATE DATABASE "dump of $old"});
	($out, $err) = run_command([ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-o',
			"$scratch/out", '-f', "$scratch/dump", $node->connstr("dump of $old") ]);
	is($out . $err, '', "$old: restored");
	is(difference([ catalog($node, "from $old") ], [ catalog($node, "dump of $old") ]),
		'', "$old: the dump has the same rights");
	delete local $columns{idem_origin};
	is(rows("dump of $old"), rows("from $old"), "$old: and the same rows");
	my $copy = session($node, "dump of $old");
	is(sqlstate($copy, qq{$path; SELECT idem_recover('w', 1, '1 hour')}), 'ID006',
		"$old: but it is a copy");
	$copy->quit;

	# What was there goes on.
	is($sql->(q{SELECT key, outcome, state, code, resource, response::text, headers, body
			FROM unnest('{succeeded,failed,expired,cancelled,live,lapsed,released,unknown}'::text[]) AS k,
			LATERAL idem_replay('t', 'o', k, NULL, (SELECT fingerprint FROM idem_record r WHERE r.key = k))}),
		join("\n",
			qq(succeeded|replay|succeeded|201|order 7|{"b" :  1,\n "a": 1.0e0}|{"h": null}|\\x00ff),
			'failed|replay|failed|402||"no"||', 'expired|expired|succeeded||order 8|||',
			'cancelled|cancelled|cancelled|||||', 'live|in_progress|processing|||||',
			'lapsed|absent|processing|||||', 'released|absent|released|||||', 'unknown|unknown|unknown|||||'),
		"$old: what was completed replays byte for byte");
	is($sql->(q{SELECT key, outcome, attempt FROM unnest('{lapsed,released}'::text[]) AS k,
			LATERAL idem_claim('t', 'o', k, lease => '1 hour')}),
		"lapsed|resume|2\nreleased|execute|2", "$old: what was open is claimed again");
	is($sql->(q{SELECT s.done, s.result FROM idem_record r,
			LATERAL idem_step(jsonb_populate_record(NULL::idem_ticket, to_jsonb(r)), 'reserve') AS s
			WHERE key = 'live'}), 't|{"shelf" :  7}', "$old: a step stays done");
	is($sql->(q{SELECT (idem_dispatch('bank pending', 'w', 1, '1 hour')).name;
			SELECT (idem_confirm(operation_id, 43)).state FROM idem_intent WHERE name = 'in_flight';
			SELECT (idem_settle(operation_id, token, 'happened', '1')).state
			FROM idem_reconcile('bank unknown', 'w', 1, '1 hour');
			SELECT state FROM idem_record WHERE key = 'unknown'}),
		"pending\nconfirmed\nconfirmed\nreleased", "$old: intents go on, and release their command");
	is($sql->(q{SELECT idem_complete('t', 'o', 'live', 42, '"late"');
			SELECT outcome, expires_at - completed_at FROM idem_replay('t', 'o', 'live')}),
		"\nreplay|3 days", "$old: a ticket from before completes");
	is($sql->(q{SELECT count(*) FROM (SELECT key, to_state FROM idem_record r,
			LATERAL (SELECT to_state FROM idem_history('t', 'o', r.key) WHERE what = 'command') AS h) AS l,
			idem_record r WHERE r.key = l.key AND r.state = l.to_state}) > 7, 1, "$old: histories are told");
	is($sql->(q{SELECT version FROM idem_define('o', ttl => '1 day');
			SELECT version, steps FROM idem_policy_steps WHERE operation = 'o' ORDER BY 1}),
		"3\n2|{reserve,pay}\n3|", "$old: policies go on");
	is($node->psql("from $old", $update), 0, "$old: once more is no error");
}

# A script that is newer than the library.
my $newer = slurp_file($present) . q{
CREATE FUNCTION idem_tomorrow() RETURNS void LANGUAGE c AS 'MODULE_PATHNAME', 'idem_tomorrow';
};
append_to_file("$scratch/newer", $newer);
add_script($folder, "$scratch/newer", 'idempotency--9.8.sql');
$node->safe_psql('postgres', 'CREATE DATABASE newer');
my ($status, undef, $message) = $node->psql('newer', q{CREATE EXTENSION idempotency VERSION '9.8'});
like($message, qr/could not find function "idem_tomorrow"/, 'a newer script is refused');

# A session whose library is older than the tables.
append_to_file("$scratch/column", "ALTER TABLE idem_record ADD COLUMN tomorrow text;\n");
add_script($folder, "$scratch/column", "idempotency--$version--9.9.sql");
my $session = session($node, 'fresh');
$session->query_safe("$path; SELECT idem_complete(idem_claim('t', 'o', 'k'))");
$node->safe_psql('fresh', q{ALTER EXTENSION idempotency UPDATE TO '9.9'});
is(sqlstate($session, q{SELECT idem_claim('t', 'o', 'k2')}), '55000', 'newer tables: refused');
($status, undef, $message) = $node->psql('fresh', qq{SELECT "Odd schema".idem_claim('t', 'o', 'k2')});
like($message, qr/does not match its library\nDETAIL:  idem_record has (\d+) columns, the library knows \d+\.\nHINT:  Install/,
	'and told what to do');
$session->quit;

done_testing();
