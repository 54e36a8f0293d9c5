/*
 * Order service: POST /orders with an Idempotency-Key, a few connections, node-postgres.
 *
 * Loses some responses on purpose: commits, then hangs up without a word.
 */
'use strict';

const http = require('http');
const { parseArgs } = require('util');
const { Pool } = require('pg');
const { COLUMNS, createOrder, toAnswer } = require('../clients/order.js');
const { chance } = require('./chance.js');
const { Journal } = require('./journal.js');

/* The options are those of service.py. */
const { values: options } = parseArgs({
  options: Object.fromEntries(['name', 'journal', 'port', 'call', 'wait', 'lose', 'seed']
    .map((name) => [name, { type: 'string' }])),
});
const journal = new Journal(options.journal, options.name);
const random = chance(options.seed);
const pool = new Pool({ max: 4 });
// A cut connection is an event as well as the error of its query. Unheard, it ends the process.
pool.on('error', () => {});
pool.on('connect', (client) => client.on('error', () => {}));

async function order(customer, key, request) {
  const client = await pool.connect();
  let broken;
  try {
    if (options.call === 'client') {
      return await createOrder(client, customer, key, request, options.wait);
    }
    const { rows: [ticket] } = await client.query(
      `SELECT ${COLUMNS} FROM ${options.call}($1, $2, $3, wait => $4::interval)`,
      [customer, key, JSON.stringify(request), options.wait]);
    return toAnswer(ticket);
  } catch (error) {
    broken = error;
    throw error;
  } finally {
    client.release(broken);
  }
}

function respond(response, name, status, body, retryAfter, replayed) {
  const headers = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) };
  if (retryAfter !== undefined && retryAfter !== null) headers['Retry-After'] = retryAfter.toFixed(3);
  if (replayed) headers['Idempotent-Replayed'] = 'true';
  response.writeHead(status, headers).end(body);
  journal.write('responded', { name });
}

/* Of SQLSTATEs those of a server that goes away; without one the connection broke. */
const DATABASE_LOST = /^(08|57P)/;

async function handle(request, response) {
  const key = request.headers['idempotency-key'];
  const customer = request.headers['x-customer']; // stands for who logged in
  const name = request.headers['x-try'];
  let text = '';
  for await (const chunk of request) text += chunk;
  if (!key || !customer) {
    return respond(response, name, 400, '{"error": "Idempotency-Key is missing"}');
  }

  journal.write('request', { name, key, customer });
  let answer;
  try {
    answer = await order(customer, key, { ...JSON.parse(text), customer });
  } catch (error) {
    if (error.severity && !DATABASE_LOST.test(error.code)) throw error;
    // Perhaps it was done, perhaps not. The client asks again, with the same key.
    journal.write('database lost', { name, error: error.message });
    return respond(response, name, 503, '{"error": "not known, ask again"}', 0.1);
  }

  journal.write('outcome', { name, key, customer, outcome: answer.outcome });
  if (['execute', 'replay'].includes(answer.outcome) && random() < Number(options.lose)) {
    journal.write('dropped', { name });
    return request.socket.destroy();
  }
  respond(response, name, answer.status, answer.body, answer.retryAfter,
    answer.outcome === 'replay');
}

http.createServer((request, response) => {
  request.on('error', () => {}); // the client did not wait
  handle(request, response).catch((error) => {
    if (request.destroyed && !request.complete) return; // it left before all was sent
    console.error(options.name, error);
    process.exit(1);
  });
}).listen(Number(options.port), '127.0.0.1', 128);
