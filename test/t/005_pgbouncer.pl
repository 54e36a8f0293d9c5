# Proves that everything works behind pgbouncer in transaction mode: a ticket
# follows its client from one server connection to another, and a storm of
# clients over two connections executes each command once.
use strict;
use warnings;

use Idem;
use IdemTest;
use IPC::Run ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

my ($pgbouncer) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}),
  '/usr/sbin';
plan skip_all => 'pgbouncer is not installed' unless defined $pgbouncer;

my $node = Idem::new_node('pgbouncer');
$node->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	CREATE TABLE orders (key text, client bigint);
	CREATE FUNCTION place_order(key text, client int) RETURNS text
	LANGUAGE plpgsql AS $$
	DECLARE
		t idem_ticket := idem_claim('t', 'o', key, to_jsonb(key), wait => '1 min');
	BEGIN
		IF t.outcome = 'execute' THEN
			INSERT INTO orders VALUES (key, client);
			PERFORM idem_complete(t, to_json(client));
		END IF;
		RETURN t.outcome;
	END $$});

my $folder = PostgreSQL::Test::Utils::tempdir_short();
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $user = $node->safe_psql('postgres', 'SELECT current_user');
append_to_file("$folder/users", qq{"$user" ""\n});
append_to_file("$folder/conf", sprintf <<'END', $node->host, $node->port, $port);
[databases]
* = host=%s port=%d
[pgbouncer]
listen_port = %d
listen_addr =
unix_socket_dir = .
auth_type = trust
auth_file = users
pool_mode = transaction
default_pool_size = 2
max_client_conn = 50
server_reset_query = DISCARD ALL
server_reset_query_always = 1
END

my $log = '';
my $pooler = IPC::Run::start([ $pgbouncer, 'conf' ],
	'>', \my $output, '2>', \$log, init => sub { chdir $folder });
END
{
	local $?;
	$pooler->kill_kill if defined $pooler;
}

for (1 .. 300)
{
	$pooler->pump_nb;
	last if -S "$folder/.s.PGSQL.$port";
	usleep(50_000);
}
-S "$folder/.s.PGSQL.$port" or die "pgbouncer does not start: $log";

sub pooled_session
{
	my $session = session($node);

	$session->query_safe("\\connect postgres $user $folder $port");
	return $session;
}

my ($client, @holders) = map { pooled_session() } 1 .. 3;

# Runs a transaction on another connection than the last one, which a holder
# keeps busy meanwhile.
my $last = '';

sub elsewhere
{
	my ($sql) = @_;
	my @held = map { $_->query_safe("BEGIN;\nSELECT pg_backend_pid()") } @holders;

	# the connection that is free from now on is not the last one
	my ($free, $holder) = @holders[ $held[0] eq $last ? (1, 0) : (0, 1) ];
	$free->query_safe('ROLLBACK');
	my ($pid, @result) = split /\n/, $client->query_safe(
		"BEGIN;\nSELECT pg_backend_pid();\n$sql;\nCOMMIT");
	$holder->query_safe('ROLLBACK');
	isnt($pid, $last, 'on another connection');
	$last = $pid;
	return join "\n", @result;
}

for my $end (qw(complete fail release))
{
	my $key = "by $end";
	my $ticket =
	  elsewhere("SELECT idem_claim('t', 'o', '$key', lease => '1 min')");

	like($ticket, qr/^\(execute,/, "$key: claimed");
	elsewhere("SELECT idem_heartbeat('$ticket'::idem_ticket, '2 min')");
	elsewhere("SELECT idem_hold('$ticket'::idem_ticket)");
	elsewhere("SELECT idem_$end('$ticket'::idem_ticket)");
	is($node->safe_psql('postgres',
			"SELECT state FROM idem_record WHERE key = '$key'"),
		{ complete => 'succeeded', fail => 'failed', release => 'released' }
		->{$end}, "$key: done");
}
$_->quit for $client, @holders;

# 8 clients, 2 connections, 100 keys, 1600 calls.
my $script = "$folder/script";
append_to_file($script, q{\set key random(1, 100)
SELECT place_order('k' || :key, :client_id);
});
my $connstr = "host=$folder port=$port user=$user dbname=postgres";
command_ok([ 'pgbench', '-n', '-c', 8, '-t', 200, '-f', $script, $connstr ],
	'a storm');
is($node->safe_psql('postgres', q{
		SELECT count(*) > 90, count(*) - count(DISTINCT key), count(*) -
			(SELECT count(*) FROM idem_record WHERE state = 'succeeded'
			 AND key LIKE 'k%') FROM orders}),
	't|0|0', 'each key has one order and one record');
is($node->safe_psql('postgres', q{
		SELECT count(*) FROM orders o JOIN idem_record r USING (key)
		WHERE r.response::text <> o.client::text}),
	0, 'with the answer of who placed it');

is($node->safe_psql('postgres', q{
		SELECT l.locktype FROM pg_locks l JOIN pg_stat_activity USING (pid)
		WHERE pid <> pg_backend_pid()}),
	'', 'no lock is left on any connection');

$pooler->kill_kill;
done_testing();
