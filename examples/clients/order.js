#!/usr/bin/env node
/*
 * Places an order once, however often it is asked to: claim, work and completion in one transaction.
 *
 * Usage: order.js CUSTOMER KEY ITEM QUANTITY    (the database comes from PGHOST, PGDATABASE ...)
 * Needs the tables of ../order.sql.
 *
 * The key is made and kept by whoever wants the order, before the first try: it has to outlive
 * this process.
 */
'use strict';

const { setTimeout: sleep } = require('timers/promises');
const { Client } = require('pg');

const REFUSALS = {
  in_progress: [409, '{"error": "another try of this command is at work, ask again"}'],
  mismatch: [422, '{"error": "this key belongs to a different request"}'],
  expired: [410, '{"error": "this command was done, its answer is no longer kept"}'],
  cancelled: [410, '{"error": "this command was cancelled"}'],
  unknown: [409, '{"error": "an operator has to decide what became of this command"}'],
};

/* What to tell the caller, in the terms of HTTP: the stored answer if there is one, else why not. */
function toAnswer({ outcome, code, response, retry_after: retryAfter }) {
  if (outcome in REFUSALS) {
    const [status, body] = REFUSALS[outcome];
    return { outcome, status, body, retryAfter };
  }
  return { outcome, status: code, body: response };
}

// Text, because a JSON value decoded and encoded again may differ from the stored bytes.
const COLUMNS =
  'outcome, code, response::text, extract(epoch FROM retry_after)::float8 AS retry_after';

/* One try. */
async function createOrder(client, customer, key, request, wait = null) {
  await client.query('BEGIN');
  try {
    const answer = await createOrderInTransaction(client, customer, key, request, wait);
    await client.query('COMMIT');
    return answer; // only here, after COMMIT, may anybody be told
  } catch (error) {
    // On a broken connection this fails as well, and the server rolls back by itself.
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

async function createOrderInTransaction(client, customer, key, request, wait) {
  const { rows: [ticket] } = await client.query(
    `SELECT ${COLUMNS}, token
       FROM idem_claim($1, 'order.create', $2, $3, wait => $4::interval)`,
    [customer, key, JSON.stringify(request), wait]);
  if (ticket.outcome !== 'execute' && ticket.outcome !== 'resume') {
    return toAnswer(ticket);
  }

  const { rows: [placed] } = await client.query(
    `INSERT INTO orders (customer, reference, item, quantity, total)
     SELECT $1, $2, item, n, n * price FROM prices, CAST($3 AS integer) AS n
      WHERE item = $4 RETURNING 'orders/' || id AS resource, row_to_json(orders)::text AS response`,
    [customer, request.reference, request.quantity, request.item]);

  const [verb, code, resource, response] = placed
    ? ['idem_complete', 201, placed.resource, placed.response]
    : ['idem_fail', 404, null, '{"error": "not sold"}'];
  // node-postgres hands out a bigint as a string; keep it one, a Number would round the token.
  await client.query(
    `SELECT ${verb}($1, 'order.create', $2, $3::bigint,
                    response => $4, code => $5, resource => $6)`,
    [customer, key, ticket.token, response, code, resource]);
  return { outcome: ticket.outcome, status: code, body: response };
}

/* SQLSTATE classes of requests that stay wrong however often they are asked. */
const FINAL = /^(22|23|42|ID)/;

/* Asks until there is an answer. */
async function createOrderSurely(customer, key, request, tries = 10) {
  for (let n = 1; ; n++) {
    let pause;
    const client = new Client();
    client.on('error', () => {}); // the query in flight gets the error too
    try {
      await client.connect();
      const answer = await createOrder(client, customer, key, request, '2 s');
      if (answer.outcome !== 'in_progress' || n === tries) return answer;
      pause = answer.retryAfter ?? 0.1;
    } catch (error) {
      // Lost, perhaps during COMMIT: nobody here can know whether the order was placed. The
      // database does. The same key again finds the order, or places it; a new key would place
      // a second one.
      if (FINAL.test(error.code) || n === tries) throw error;
      pause = Math.min(0.1 * 2 ** n, 5);
    } finally {
      await client.end().catch(() => {});
    }
    await sleep(pause * 1000);
  }
}

async function main() {
  const [customer, key, item, quantity] = process.argv.slice(2);
  const request = { customer, reference: key, item, quantity: Number(quantity) };
  const answer = await createOrderSurely(customer, key, request);
  console.log(answer.outcome, answer.status, answer.body);
}

module.exports = { COLUMNS, createOrder, toAnswer };
if (require.main === module) main();
