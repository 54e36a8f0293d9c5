# Proves what the outbox promises beyond one session: an intent or step noted in
# a prepared transaction is nobody's until COMMIT PREPARED, across a crash; a
# channel in the policy forbids PREPARE, and without one nothing is notified;
# and a verdict that contradicts another one is in the server's log even when
# its caller handles the error.
use strict;
use warnings;

use Idem;
use IdemTest;
use Test::More;

my $node = Idem::new_node('outbox', conf => 'max_prepared_transactions = 10');
$node->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	CREATE TABLE orders (key text);
	SELECT idem_define('told', notify => 'outbox')});

# An order, its message and a step, in one prepared transaction.
sub prepare
{
	my ($key) = @_;

	$node->safe_psql('postgres', "
		CREATE TABLE ticket_$key AS
		SELECT idem_claim('t', 'leased', '$key', '1', lease => '1 hour') AS t");
	return sqlstate($node, "
		BEGIN;
		INSERT INTO orders VALUES ('$key');
		SELECT idem_intend(t, 'mail', 'queue', send => true), idem_complete(t)
		FROM idem_claim('t', 'atomic', '$key', '1') AS t;
		SELECT idem_step_done(t, 'order', '\"$key\"') FROM ticket_$key;
		SELECT idem_intend(t, 'mail', 'queue', send => true) FROM ticket_$key;
		PREPARE TRANSACTION '$key'");
}

# How many atomic commands, intents and steps.
sub seen
{
	return $node->safe_psql('postgres', q{
		SELECT (SELECT count(*) FROM idem_record WHERE operation = 'atomic'),
			   (SELECT count(*) FROM idem_intent),
			   (SELECT count(*) FROM idem_step)});
}

is(prepare('done'), '00000', 'prepared, to be committed');
is(prepare('undone'), '00000', 'prepared, to be rolled back');
for my $when ('before', 'after')
{
	crash($node) if $when eq 'after';
	is(seen(), '0|0|0', "$when the crash: nothing is seen");
	is($node->safe_psql('postgres',
			q{SELECT count(*) FROM idem_dispatch('queue', 'w', 10, '1 hour')}),
		0, "$when the crash: nothing is handed out");
	is(sqlstate($node, q{SET lock_timeout = '100ms';
			SELECT idem_step(t, 'order') FROM ticket_done}),
		'55P03', "$when the crash: the command is held");
}
$node->safe_psql('postgres', q{COMMIT PREPARED 'done'});
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'undone'});
is(seen(), '1|2|1', 'committed: all is there; rolled back: nothing');
is($node->safe_psql('postgres', q{
		SELECT string_agg(operation || ' ' || key, ', ' ORDER BY operation)
		FROM idem_dispatch('queue', 'w', 10, '1 hour')}),
	'atomic done, leased done', 'both intents are handed out, once');
is($node->safe_psql('postgres',
		q{SELECT count(*) FROM idem_dispatch('queue', 'w', 10, '1 hour')}),
	0, 'and not again');
is($node->safe_psql('postgres', q{
		SELECT d.done, d.result, u.done FROM ticket_done AS a, ticket_undone AS b,
			idem_step(a.t, 'order') AS d, idem_step(b.t, 'order') AS u}),
	't|"done"|f', 'the steps share the fate of their orders');
is($node->safe_psql('postgres', 'SELECT string_agg(key, \' \') FROM orders'),
	'done', 'so do the writes');

# A hand-out, too, is nobody's business until it is committed.
$node->safe_psql('postgres', q{
	SELECT count(idem_intend(t, 'i', 'second', send => true)) FROM ticket_done});
is(sqlstate($node, q{
		BEGIN;
		SELECT idem_dispatch('second', 'w1', 1, '1 hour');
		PREPARE TRANSACTION 'taken'}), '00000', 'a hand-out is prepared');
crash($node);
is($node->safe_psql('postgres',
		q{SELECT count(*) FROM idem_dispatch('second', 'w2', 1, '1 hour')}),
	0, 'it keeps others out, across the crash');
$node->safe_psql('postgres', q{ROLLBACK PREPARED 'taken'});
is($node->safe_psql('postgres',
		q{SELECT worker FROM idem_dispatch('second', 'w2', 1, '1 hour')}),
	'w2', 'until it is rolled back');

# NOTIFY, by policy only.
is($node->safe_psql('postgres', 'SELECT pg_notification_queue_usage()'), 0,
	'nothing was notified');
my $note = q{SELECT idem_intend(idem_claim('t', '%s', '%s', lease => '1 hour'),
	'i', 'third', send => %s)};
is(sqlstate($node, 'BEGIN; ' . sprintf($note, 'told', 'a', 'true')
		. q{; PREPARE TRANSACTION 'told'}),
	'0A000', 'who notifies cannot be prepared');
is(sqlstate($node, 'BEGIN; ' . sprintf($note, 'told', 'a', 'false')
		. q{; PREPARE TRANSACTION 'told'; ROLLBACK PREPARED 'told'}),
	'00000', 'who only notes what it sends itself can');
my $listener = session($node);
$listener->query('LISTEN outbox');
$node->safe_psql('postgres', sprintf($note, 'told', 'b', 'true'));
$node->safe_psql('postgres', sprintf($note, 'untold', 'b', 'true'));
my ($heard) = $listener->query('SELECT 1');
my @heard = $heard =~ /Asynchronous notification "outbox" with payload "third"/g;
is(@heard, 1, 'a listener hears of the one, with its target');
$listener->quit;

# Contradicting verdicts.
$node->safe_psql('postgres', q{
	SELECT idem_send(idem_operation_id('t', 'untold', 'b', 'i'), 'w', '1 us')});
my $token = $node->safe_psql('postgres',
	q{SELECT token FROM idem_reconcile('third', 'r', 10, '1 hour')});
my $settle = qq{PERFORM idem_settle(idem_operation_id('t', 'untold', 'b', 'i'), $token, '%s', '"%s"')};
$node->safe_psql('postgres', sprintf("DO \$\$ BEGIN $settle; END \$\$", 'happened', 'in the ledger'));
my $logged = -s $node->logfile;
is(sqlstate($node, sprintf("DO \$\$ BEGIN $settle; EXCEPTION WHEN SQLSTATE 'ID003' THEN NULL; END \$\$",
		'absent', 'not in the ledger')), '00000', 'the caller handles the second verdict');
my $log = PostgreSQL::Test::Utils::slurp_file($node->logfile, $logged);
like($log, qr/LOG:  verdict absent about an intent that is confirmed/, 'the log has it');
like($log, qr/DETAIL:  The intent is .*, "i" of tenant "t", operation "untold", key "b"/,
	'with the address');
unlike($log, qr/LOG:  verdict.*(STATEMENT|CONTEXT|in the ledger)/s, 'and not the evidence');
is($node->safe_psql('postgres', q{SELECT state, evidence FROM idem_intent WHERE target = 'third' AND operation = 'untold'}),
	'confirmed|["in the ledger"]', 'the first stays');
$logged = -s $node->logfile;
$node->safe_psql('postgres', sprintf("DO \$\$ BEGIN $settle; END \$\$", 'happened', 'again'));
unlike(PostgreSQL::Test::Utils::slurp_file($node->logfile, $logged), qr/verdict/,
	'a repetition is no contradiction');

# An operation id is the same in every encoding, since other systems know it.
for my $encoding ('LATIN1', 'SQL_ASCII')
{
	$node->safe_psql('postgres', qq{CREATE DATABASE "$encoding" TEMPLATE template0 ENCODING '$encoding' LOCALE 'C'});
	$node->safe_psql($encoding, 'CREATE EXTENSION idempotency');
	my $id = q{SET client_encoding = 'UTF8'; SELECT idem_operation_id('Zoë', 'café', 'ß', 'ñ')};
	is($node->safe_psql($encoding, $id), $node->safe_psql('postgres', $id), "the same id in $encoding and UTF8");
}
# SQL_ASCII takes any bytes.
is($node->safe_psql('SQL_ASCII', q{
		SELECT (idem_intend(idem_claim('t', 'o', convert_from(key, 'SQL_ASCII'), lease => '1 hour'), 'pay', 'bank')).state
		FROM unnest(ARRAY['\xe9', '\xe8']::bytea[]) AS key}),
	"pending\npending", 'and bytes that are no UTF-8 have one of their own');

done_testing();
