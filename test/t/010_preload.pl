# Proves that no setting, good, bad or unknown, keeps a server from starting
# or a session from working, with the library preloaded or not, and that a
# preloaded library does no harm where there is no extension.
use strict;
use warnings;

use Idem;
use IdemTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Idem::new_node('preload', start => 0);

my %values = (
	good => [ 'idempotency.ttl' => "'90 min'",
		'idempotency.wait' => '250', 'idempotency.durability' => "'local'",
		'idempotency.stat_operations' => '7' ],
	bad => [ 'idempotency.ttl' => '-7', 'idempotency.wait' => "'3 days'",
		'idempotency.max_response_size' => "'much'",
		'idempotency.tombstone_retention' => '-2',
		'idempotency.durability' => "'maximal'",
		'idempotency.stat_operations' => '0' ],
	unknown => [ 'idempotency.no_such' => '1' ]);
my %shown = (
	good => '90min|250ms|1MB|-1|local|7',
	bad => '1d|0|1MB|-1|local|256',
	unknown => '1d|0|1MB|-1|local|256');
my $show = q{SELECT current_setting('idempotency.ttl'),
	current_setting('idempotency.wait'),
	current_setting('idempotency.max_response_size'),
	current_setting('idempotency.tombstone_retention'),
	current_setting('idempotency.durability'),
	current_setting('idempotency.stat_operations')};

sub configure
{
	my ($preload, $kind) = @_;
	my @values = @{ $values{$kind} };
	my $conf = "shared_preload_libraries = '$preload'\n";

	$conf .= "$values[$_] = $values[ $_ + 1 ]\n"
	  for grep { $_ % 2 == 0 } 0 .. $#values;
	unlink $node->data_dir . '/values.conf';
	$node->append_conf('values.conf', $conf);
}
$node->append_conf('postgresql.conf', "include 'values.conf'");
configure('', 'unknown');
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE without TEMPLATE template0');
$node->safe_psql('postgres', 'CREATE EXTENSION idempotency');

for my $preload ('', 'idempotency')
{
	for my $kind (sort keys %values)
	{
		my $name = "$kind values, " . ($preload ? 'preloaded' : 'not preloaded');

		my $log_size = -s $node->logfile;
		configure($preload, $kind);
		$node->restart;
		pass("$name: the server starts");

		my ($status, $output, $messages) =
		  $node->psql('postgres', "LOAD 'idempotency'; $show");
		is($output, $shown{$kind}, "$name: settings");
		my $log = slurp_file($node->logfile, $log_size);
		for (grep { /^idem/ } @{ $values{$kind} })
		{
			my $complaint = qr/WARNING:.*"\Q$_\E"/;

			like($preload ? $log : $messages, $complaint, "$name: $_ warned of")
			  if $kind ne 'good';
			unlike("$log$messages", $complaint, "$name: $_ not warned of")
			  if $kind eq 'good';
		}
		is($node->safe_psql('postgres', q{
				BEGIN;
				SELECT idem_complete(idem_claim('t', 'o', 'k'));
				SELECT outcome FROM idem_replay('t', 'o', 'k');
				ROLLBACK}), "\nreplay", "$name: claims work");
	}
}

# Bad values that arrive later change nothing.
configure('idempotency', 'good');
$node->restart;
my $session = session($node);
configure('idempotency', 'bad');
$node->reload;
$node->wait_for_log(qr/invalid value for parameter "idempotency.durability"/);
is($session->query_safe($show), $shown{good}, 'reload keeps what is good');

# A database that knows nothing of the extension.
is($node->safe_psql('without', q{
		BEGIN; CREATE TABLE t (i int); SAVEPOINT s; INSERT INTO t VALUES (1);
		ROLLBACK TO s; COMMIT;
		BEGIN; INSERT INTO t VALUES (2); COMMIT;
		SELECT i FROM t}), 2, 'preloaded, without the extension: all as usual');
is(sqlstate($session, q{DROP EXTENSION idempotency; SELECT 1}),
	'00000', 'preloaded: DROP EXTENSION');
is(sqlstate($session, q{CREATE EXTENSION idempotency;
		SELECT idem_complete(idem_claim('t', 'o', 'k'))}),
	'00000', 'preloaded: CREATE EXTENSION');

$session->quit;

# Beside a library that was loaded before it and asks for shared memory as well.
configure('pg_stat_statements,idempotency', 'good');
$node->restart;
is($node->safe_psql('postgres', q{
		CREATE EXTENSION pg_stat_statements;
		SELECT outcome FROM idem_replay('t', 'both', 'k');
		SELECT lookups FROM idem_stat WHERE operation = 'both';
		SELECT count(*) > 0 FROM pg_stat_statements}),
	"absent\n1\nt", 'both libraries have their memory');

done_testing();
