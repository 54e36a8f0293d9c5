# What the TAP tests have in common beyond nodes: sessions, SQLSTATEs, crashes.
#
#   use IdemTest;
#   my $session = session($node);             # a psql that outlives errors
#   is(sqlstate($session, 'SELECT 1/0'), '22012');
#   start_query($session, 'COMMIT');          # does not wait for the answer
#   wait_for($node, 'SELECT count(*) = 1 FROM pg_stat_activity WHERE ...');
#   my $answer = answer($session);            # now it does
#   crash($node, $session);                   # kill -9 of all at once, start
#   kill_backends($node, $pids, $session);    # of those alone
#   my ($node, $unflushed) = lazy_node();     # where only a commit flushes
package IdemTest;

use strict;
use warnings;

use Exporter 'import';
use Idem;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT =
  qw(session sqlstate start_query answer wait_for postmaster crash
  kill_backends stop_writers lazy_node);

sub session
{
	my ($node, $database) = @_;

	return $node->background_psql($database || 'postgres',
		on_error_stop => 0);
}

# Of the last statement; 00000 where it succeeded.  A node gets a new session.
sub sqlstate
{
	my ($where, $sql) = @_;
	my $is_node = $where->can('safe_psql');
	my $session = $is_node ? session($where) : $where;
	my ($output) = $session->query("$sql;\n\\echo :SQLSTATE");

	$session->{stderr} = '';
	$session->quit if $is_node;
	return (split /\n/, $output)[-1];
}

sub start_query
{
	my ($session, $sql) = @_;

	$session->query_until(qr/^started$/m, "\\echo started\n$sql;\n");
}

# The output of the started query, and what the server said beside it.
sub answer
{
	my ($session) = @_;
	my ($output) = $session->query('');
	my $messages = $session->{stderr};

	$session->{stderr} = '';
	return wantarray ? ($output, $messages) : $output;
}

# Until the query answers t.
sub wait_for
{
	my ($node, $sql) = @_;

	$node->poll_query_until('postgres', $sql)
	  or die "timed out: $sql";
}

sub postmaster
{
	my ($node) = @_;
	my $file = $node->data_dir . '/postmaster.pid';

	open my $fh, '<', $file or die "$file: $!";
	return 0 + <$fh>;
}

# The parent of each process, also of one that has ended and still has its id:
# a server would not start while its postmaster.pid names one.
sub processes
{
	my %processes;

	for my $file (glob '/proc/[0-9]*/stat')
	{
		open my $fh, '<', $file or next;
		my $stat = <$fh>;
		$processes{$1} = $2
		  if defined $stat && $stat =~ /^(\d+) \(.*\) \S (\d+) /s;
	}
	return %processes;
}

# Everything of the server dies at the same moment, then it starts again.  The
# sessions are ended in between: a new server inherits the pipes to them.
sub crash
{
	my ($node, @sessions) = @_;
	my $postmaster = postmaster($node);

	# stopped, so that it neither reacts to the others' death nor replaces them
	kill 'STOP', $postmaster;
	my %parent = processes();
	my @children = grep { $parent{$_} == $postmaster } keys %parent;
	kill 'KILL', @children;
	$node->kill9;
	$_->{run}->finish for @sessions;
	for (1 .. 600)
	{
		%parent = processes();
		last unless grep { exists $parent{$_} } $postmaster, @children;
		usleep(50_000);
	}
	$node->start;
}

# The backends of these sessions; the server starts anew by itself.
sub kill_backends
{
	my ($node, $pids, @sessions) = @_;
	my $log_size = -s $node->logfile;

	kill 'KILL', @$pids;
	$_->{run}->finish for @sessions;
	$node->wait_for_log(qr/ready to accept connections/, $log_size);
}

# Whoever would flush WAL beside the commits.
sub stop_writers
{
	my ($node) = @_;

	kill 'STOP', split /\n/, $node->safe_psql('postgres', q{
		SELECT pid FROM pg_stat_activity
		WHERE backend_type IN ('walwriter', 'background writer')});
}

# A node with a table "orders" on which nobody but a commit flushes, and the
# query for the bytes of WAL that are not flushed: a commit alone is longer
# than 32.
sub lazy_node
{
	my $node = Idem::new_node('flush', conf => q{
		synchronous_commit = off
		wal_writer_delay = 10s
		autovacuum = off
		bgwriter_lru_maxpages = 0
	});
	$node->safe_psql('postgres', q{
		CREATE EXTENSION idempotency;
		CREATE TABLE orders (key text);
		CHECKPOINT});
	stop_writers($node);
	return ($node,
		'SELECT pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn()');
}

1;
