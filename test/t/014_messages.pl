# Proves that SQLSTATEs do not depend on the language of the messages (case 2).
use strict;
use warnings;

use Idem;
use IdemTest;
use PostgreSQL::Test::Utils;
use Test::More;

# A locale of our own, so that the machine needs none.
my $locales = PostgreSQL::Test::Utils::tempdir();
my (undef, $problem) = run_command(
	[ 'localedef', '-i', 'de_DE', '-f', 'UTF-8', "$locales/de_DE.UTF-8" ]);
plan skip_all => "no German locale can be made: $problem"
  unless -d "$locales/de_DE.UTF-8";
$ENV{LOCPATH} = $locales;

my $node = Idem::new_node('messages');
$node->safe_psql('postgres', q{
	CREATE EXTENSION idempotency;
	SELECT idem_complete(idem_claim('t', 'o', 'done', '1'), '1');
	SELECT idem_claim('t', 'o', 'leased', '1', lease => '1 hour')});

my ($status, $output, $messages) = $node->psql('postgres',
	q{SET lc_messages = 'de_DE.UTF-8'; SELECT 1/0});
plan skip_all => "the server has no German messages: $messages"
  unless $messages =~ /FEHLER:/;

my $holder = session($node);
$holder->query_safe(q{BEGIN; SELECT idem_claim('t', 'o', 'held')});

my %expected = (
	q{SELECT idem_claim('t', 'o', NULL)} => '22004',
	q{SELECT idem_claim('t', 'o', ' ')} => '22023',
	q{SELECT idem_claim('t', 'o', 'k', lease => '1 month')} => '22023',
	q{SELECT idem_claim('t', 'o', 'k')} => 'ID001',
	q{SELECT idem_complete('t', 'o', 'done', 1)} => 'ID002',
	q{SELECT idem_release('t', 'o', 'done', token) FROM idem_record
		WHERE key = 'done'} => 'ID003',
	q{SET idempotency.max_response_size = 1;
		SELECT idem_complete('t', 'o', 'leased', token, '"long"')
		FROM idem_record WHERE key = 'leased'} => 'ID005',
	q{SET idempotency.durability = 'replicated';
		SELECT idem_replay('t', 'o', 'done', '1')} => 'ID503',
	q{SELECT idem_require(idem_claim('t', 'o', 'done', '2'))} => 'ID422',
	q{SELECT idem_require(idem_claim('t', 'o', 'held'))} => 'ID409',
	q{SELECT idem_require(idem_replay('t', 'o', 'never'))} => 'ID404',
	q{SET lock_timeout = '10 ms';
		SELECT idem_claim('t', 'o', 'held', wait => '1 min')} => '55P03',
	q{SET statement_timeout = '10 ms';
		SELECT idem_claim('t', 'o', 'held', wait => '1 min')} => '57014',
	q{SET default_transaction_read_only = on;
		SELECT idem_claim('t', 'o', 'k')} => '25006',
	q{DELETE FROM idem_record} => 'ID003',
	q{SELECT outcome FROM idem_claim('t', 'o', 'held', wait => '10 ms')} =>
	  '00000',
	q{SELECT outcome FROM idem_claim('t', 'o', 'done', '1')} => '00000');

for my $language ('C', 'de_DE.UTF-8')
{
	for my $sql (sort keys %expected)
	{
		is(sqlstate($node, "SET lc_messages = '$language'; $sql"),
			$expected{$sql}, "$language: $sql");
	}
}

$holder->quit;
done_testing();
