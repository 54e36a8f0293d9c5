# Proves that examples/prometheus/queries.yaml works with the real
# prometheus-postgres-exporter, under a role that has the rights which its
# comment names and no others, and that every metric it names arrives with the
# value of the views.
use strict;
use warnings;

use HTTP::Tiny;
use Idem;
use IPC::Run qw(start);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my ($exporter) = grep { -x } '/usr/bin/prometheus-postgres-exporter';
plan skip_all => 'prometheus-postgres-exporter is not installed'
  unless $exporter;

my $file = 'examples/prometheus/queries.yaml';
$file = "$ENV{SCRATCH}/src/$file" unless -e $file;
my $yaml = slurp_file($file);
my $node = Idem::new_node('exporter',
	conf => "shared_preload_libraries = 'idempotency'\n");
my ($rights) = $yaml =~ /^(#   CREATE ROLE .*?)^#\n/ms;
$rights =~ s/^# +//mg;
$node->safe_psql('postgres', "CREATE EXTENSION idempotency; $rights");
$node->safe_psql('postgres', q{
	SELECT idem_complete(idem_claim('t', 'order', 'a'));
	SELECT idem_claim('t', 'order', 'a') FROM generate_series(1, 3);
	SELECT idem_claim('t', 'order', 'b', lease => '1us');
	SELECT idem_claim('t', 'order', 'c', lease => '1h');
	SELECT idem_claim('t', 'order', 'c', wait => '20 ms');
	SELECT count(idem_intend(c, 'pay', 'bank', send => true))
	FROM idem_claim('t', 'order', 'd', lease => '1h') AS c});
$node->psql('postgres', q{SELECT idem_complete('t', 'order', 'a', 1)});

my $port = PostgreSQL::Test::Cluster::get_free_port();
local $ENV{DATA_SOURCE_NAME} = 'user=monitor dbname=postgres sslmode=disable host='
  . $node->host . ' port=' . $node->port;
my $out = '';
my $process = start([ $exporter, "--extend.query-path=$file",
		'--disable-default-metrics', '--disable-settings-metrics',
		"--web.listen-address=127.0.0.1:$port" ], '<', \undef, '>&', \$out);
END
{
	local $?;
	$process->kill_kill if defined $process;
}

my $answer;
for (1 .. 300)
{
	$process->pump_nb;
	$answer = HTTP::Tiny->new->get("http://127.0.0.1:$port/metrics");
	last if $answer->{success};
	usleep(100_000);
}
ok($answer->{success}, 'the exporter answers') or diag($out);
my $metrics = $answer->{content};
sub shows
{
	my ($metric) = @_;

	like($metrics, qr/^\Q$metric\E$/m, $metric);
}

# the server is a label of each
$metrics =~ s/,?server="[^"]*"//g;
my $label = 'operation="order"';
shows(qq(idem_claims_total{$label,outcome="execute"} 4));
shows(qq(idem_claims_total{$label,outcome="replay"} 3));
shows(qq(idem_claims_total{$label,outcome="in_progress"} 1));
shows(qq(idem_commands_total{event="completed",$label} 1));
shows(qq(idem_intents_total{event="dispatched",$label} 0));
shows(qq(idem_tickets_stale_total{$label} 1));
shows(qq(idem_tickets_waits_total{$label} 1));
shows(qq(idem_open_commands{$label,state="processing"} 3));
shows(qq(idem_open_commands{$label,state="lapsed"} 1));
shows(qq(idem_open_intents{$label,state="pending"} 1));
shows(qq(idem_unswept{durability="local"} 0));
shows(qq(idem_standbys_required{durability="local"} 0));
my ($waited) =
  $metrics =~ /^idem_tickets_wait_seconds_total\{$label\} ([0-9.e+-]+)$/m;
ok($waited && $waited > 0.01 && $waited < 15, 'time waited in seconds')
  or diag('waited ', $waited // 'nothing');
like($metrics, qr/^idem_oldest_command_seconds\{$label\} [0-9.e+-]+$/m,
	'age of the oldest command');

# Every metric that the file names.
my ($namespace, @missing);
for (split /\n/, $yaml =~ s/^    - \w+:\n +usage: "LABEL"$//mgr)
{
	$namespace = $1 if /^(\w+):$/;
	push @missing, "${namespace}_$1"
	  if /^    - (\w+):$/ && $metrics !~ /^${namespace}_$1\{/m;
}
is("@missing", '', 'no metric is missing');
like($metrics, qr/^pg_exporter_last_scrape_error(\{\})? 0$/m, 'no query failed');
like($metrics, qr/^pg_exporter_user_queries_load_error\{[^}]*filename[^}]*\} 0$/m,
	'the file is as it should be');

done_testing();
