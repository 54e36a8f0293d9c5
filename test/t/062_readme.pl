# Proves that the SQL of README.md does what it says: each of its blocks is run,
# with something in place of what it leaves out, and gives the rows that it
# shows; and that the server understands what the client program sends.
use strict;
use warnings;

use FindBin;
use Idem;
use PostgreSQL::Test::Utils;
use Test::More;

my $root = "$FindBin::RealBin/../..";
my @blocks = slurp_file("$root/README.md") =~ /^```sql\n(.*?)^```/msg;
my $node = Idem::new_node('readme');
my $order = qr/INSERT INTO orders …/;
my $new_order = 'INSERT INTO orders DEFAULT VALUES';
my $claimed = q{'acme', 'order.create', 'failing'};

# A block is known by a phrase.  The rest: what stands for what it leaves out.
my @known = (
	[ 'CREATE EXTENSION' ],
	[ 'total', [ qr/"quantity": 3}'\);/, q~"quantity": 3}') \gset~ ], [ $order, $new_order ],
		[ qr/\d{19}/, ':token' ] ],
	[ 'CREATE FUNCTION order_claim' ],
	[ 'idem_execute' ],
	[ 'idem_fail', [ qr/… FROM idem_claim\(…\);/, "token FROM idem_claim($claimed) \\gset" ],
		[ qr/… +-- a business error/, "$new_order; SELECT 1 / 0;" ], [ qr/idem_fail\(…/, "idem_fail($claimed, :token" ] ],
	[ 'guard =>', [ qr/SELECT … FROM/, 'SELECT token FROM' ], [ qr/v3'\);(?=\n\Q$new_order\E)/, q{v3') \gset} ],
		[ qr/'key-1', …,/, q{'key-1', :token,} ] ],
	[ 'idem_step', [ qr/\(ticket,/, '((SELECT ticket FROM mine),' ] ],
	[ 'idem_history', [ qr/5f3c…/, 'lapsed' ] ],
	[ 'idem_define' ],
	[ 'cron.schedule', [ qr/SELECT cron\.schedule\(.*\);/, '' ] ],
	[ 'idem_grant' ],
	[ 'ALTER ROLE' ]);

my $example = slurp_file("$root/examples/order.sql");
for my $block (@blocks)
{
	my ($known) = grep { index($block, $_->[0]) >= 0 } @known;
	my ($phrase, @places) = @{ $known || [] };

	ok($phrase, 'a block that is known') or diag($block);
	next unless $phrase;
	@known = grep { $_ != $known } @known;
	if ($phrase =~ /order_claim/)
	{
		for my $line (grep { /\w/ && !/…/ } split /\n/, $block)
		{
			(my $words = quotemeta $line) =~ s/(\\\s)+/\\s+/g;
			like($example, qr/$words/, "in the example: $line");
		}
		next;
	}

	my @rows = map { join '|', map { s/^\s+|\s+$//gr } split /\|/, $_, -1 } $block =~ /^--  ?(.*\|.*)$/mg;
	$block =~ s/^--.*\n//mg;
	$block =~ s/$order/$new_order/g;
	$block =~ s/$_->[0]/$_->[1]/g or fail("$phrase: has $_->[0]")
	  for grep { $_->[0] ne $order } @places;
	unlike($block =~ s/5f3c…//gr, qr/…/, "$phrase: nothing is left out");

	my ($status, $output, $messages) = $node->psql('postgres', $block, on_error_stop => 0);
	$messages =~ s/^.*division by zero$//m;
	unlike($messages, qr/ERROR/, "$phrase: runs") or diag($messages);
	for my $row (grep { !/^outcome/ } @rows)
	{
		# what is cut off, a token, and a time
		(my $pattern = quotemeta $row) =~ s/\\\xe2\\\x80\\\xa6/[^|]*/g;
		like($output, qr/^$pattern$/m, "$phrase: $row") if $row !~ /\d{19}/;
	}

	$node->safe_psql('postgres', q{
		CREATE TABLE orders (id serial);
		CREATE FUNCTION order_handler(request jsonb) RETURNS json LANGUAGE sql AS $$ SELECT '{"id": 17}'::json $$;
		CREATE ROLE shop;
		CREATE ROLE shop_app LOGIN;
		SELECT idem_grant('shop_app', 'operator');
		CREATE TABLE mine AS SELECT t AS ticket FROM idem_claim('acme', 'order.ship', '1', lease => '1 hour') AS t;
		SELECT idem_intend(idem_claim('acme', 'order.create', 'lapsed', lease => '2 s', owner => 'worker-3'), 'pay', 'bank');
		SELECT 1}) if $phrase =~ /CREATE/;
	if ($phrase =~ /guard/)
	{
		$node->safe_psql('postgres', q{SELECT idem_send(operation_id, 'cashier', '1 us') FROM idem_intent});
		$node->poll_query_until('postgres', q{
			SELECT lease_until <= clock_timestamp() FROM idem_record WHERE key = 'lapsed'}) or die;
		$node->safe_psql('postgres', q{CALL idem_maintain()}, extra_params => [ '-U', 'shop_app' ]);
	}
}
is(join(', ', map { $_->[0] } @known), '', 'all of them are there');

# What the client program sends, as a driver that knows no types.
my ($program) = slurp_file("$root/README.md") =~ /^```python\n(.*?)^```/ms;
my @statements = map { join '', /"(.*)"/mg } $program =~ /execute\((.*?),\s+\(/sg;
is(scalar @statements, 2, 'the client program claims and completes');
for my $statement (@statements)
{
	my $n = 0;

	$statement =~ s/%s/'$' . ++$n/ge;
	is(($node->psql('postgres', "PREPARE s AS $statement"))[0], 0, $statement);
}
is($node->safe_psql('postgres', q{SELECT state, code, (SELECT count(*) FROM orders) FROM idem_record WHERE key = 'failing'}),
	'failed|402|2', 'what failed is rolled back, and the failure kept');

done_testing();
