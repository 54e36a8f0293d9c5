# Proves that idem_maintain works as the one statement of a pg_cron job, in both
# ways that pg_cron has to run one: with commits in between, and also where the
# job belongs to a role with no other right.
use strict;
use warnings;

use Idem;
use IdemTest;
use PostgreSQL::Test::Utils;
use Test::More;

my ($sharedir) = run_command([ 'pg_config', '--sharedir' ]);
plan skip_all => 'pg_cron is not installed (Debian package postgresql-15-cron, or that of the server\'s version)'
  unless -e "$sharedir/extension/pg_cron.control";

sub cron_node
{
	my ($name, $workers) = @_;
	my $node = Idem::new_node($name, conf => qq{
shared_preload_libraries = 'pg_cron'
cron.database_name = 'postgres'
cron.use_background_workers = $workers
}, start => 0);

	$node->append_conf('postgresql.conf', "cron.host = '" . $node->host . "'\n");
	$node->start;
	$node->safe_psql('postgres', q{
		CREATE EXTENSION pg_cron;
		CREATE EXTENSION idempotency;
		CREATE ROLE janitor LOGIN;
		GRANT EXECUTE ON PROCEDURE idem_maintain TO janitor;
		GRANT USAGE ON SCHEMA cron TO janitor;
		SELECT count(idem_complete(idem_claim('t', 'o', i::text, ttl => '1 us'), '"gone"'))
		FROM generate_series(1, 500) AS i});
	$node->safe_psql('postgres',
		q{SELECT cron.schedule('maintain', '* * * * *', 'CALL idem_maintain(batch => 100)')},
		extra_params => [ '-U', 'janitor' ]);
	return $node;
}

my %nodes = (
	'libpq' => cron_node('libpq', 'off'),
	'background workers' => cron_node('workers', 'on'));

# At the next full minute.
for my $name (sort keys %nodes)
{
	my $node = $nodes{$name};

	wait_for($node, q{SELECT count(*) > 0 FROM cron.job_run_details WHERE end_time IS NOT NULL});
	is($node->safe_psql('postgres', q{SELECT command, username, status, return_message
			FROM cron.job_run_details ORDER BY runid LIMIT 1}),
		"CALL idem_maintain(batch => 100)|janitor|succeeded|" . ($name eq 'libpq' ? 'CALL' : 'CALL'), $name);
	is($node->safe_psql('postgres', 'SELECT count(*), count(response) FROM idem_record'),
		'500|0', "$name: all is swept");
}

done_testing();
