/*
 * Client that wants N orders placed: sends each many times at once until one try is acknowledged.
 *
 * All its state is in its arguments and its journals: started again after a kill, it goes on with
 * the orders that were not acknowledged yet.
 */
'use strict';

const http = require('http');
const { setTimeout: sleep } = require('timers/promises');
const { parseArgs } = require('util');
const { chance } = require('./chance.js');
const { Journal, read } = require('./journal.js');

/* The options are those of client.py. */
const { values: options } = parseArgs({
  options: Object.fromEntries(['name', 'journal', 'customer', 'orders', 'ports', 'burst', 'hang-up',
    'alter', 'seed'].map((name) => [name, { type: 'string' }])),
});
const ports = options.ports.split(',');
const acknowledged = new Set(read(options.journal, options.name)
  .filter(({ event }) => event === 'acknowledged').map(({ key }) => key));
const journal = new Journal(options.journal, options.name);
const random = chance(options.seed);
let number = 0;

/* One try of order n. Its status, or null when there was no answer. */
function attempt(n, altered = false) {
  const key = `order-${n}`;
  const name = `${options.name}.${process.pid}.${++number}`;
  const body = JSON.stringify({
    quantity: n % 9 + 1 + (altered ? 1 : 0), item: ['tea', 'coffee', 'cocoa'][n % 3], reference: `R${n}`,
  });
  journal.write('try', { name, key, customer: options.customer, altered });

  return new Promise((resolve) => {
    let over = false;
    const end = (event, facts, status) => {
      if (over) return;
      over = true;
      journal.write(event, { name, ...facts });
      resolve(status);
    };
    const request = http.request({
      port: ports[Math.floor(random() * ports.length)],
      host: '127.0.0.1',
      method: 'POST',
      path: '/orders',
      agent: false,
      timeout: 20000,
      headers: {
        'Idempotency-Key': key, 'X-Customer': options.customer, 'X-Try': name,
        'Content-Length': Buffer.byteLength(body),
      },
    });
    request.on('error', (error) => end('no answer', { error: error.message }, null));
    request.on('timeout', () => request.destroy(new Error('timed out')));
    request.on('response', async (response) => {
      try {
        let text = '';
        for await (const chunk of response) text += chunk;
        const replayed = response.headers['idempotent-replayed'] === 'true';
        end('answer', { status: response.statusCode, body: text, replayed }, response.statusCode);
      } catch (error) {
        end('no answer', { error: error.message }, null);
      }
    });
    request.end(body, () => {
      if (random() >= Number(options['hang-up'])) return;
      setTimeout(() => {
        end('hung up', {}, null);
        request.destroy();
      }, random() * 50);
    });
  });
}

async function place(n) {
  for (let burst = 1; ; burst++) {
    const tries = Array.from({ length: Number(options.burst) }, () => attempt(n));
    const statuses = await Promise.all(tries);
    if (statuses.includes(201)) break;
    if (statuses.includes(422)) return; // asking again would not help; the report will say so
    await sleep(Math.min(20 * burst, 200));
  }
  journal.write('acknowledged', { key: `order-${n}`, customer: options.customer });
  // A bug of this client: the same key for another order.
  if (random() < Number(options.alter)) await attempt(n, true);
}

async function work(orders) {
  for (let n; (n = orders.shift());) await place(n);
}

const orders = Array.from({ length: Number(options.orders) }, (_, i) => i + 1)
  .filter((n) => !acknowledged.has(`order-${n}`));
Promise.all([work(orders), work(orders), work(orders)]);
