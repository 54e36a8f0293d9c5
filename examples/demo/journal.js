/* What a process of the demo saw: the JavaScript twin of journal.py, same files and lines. */
'use strict';

const fs = require('fs');
const path = require('path');

class Journal {
  constructor(folder, name) {
    this.file = fs.openSync(path.join(folder, `${name}.${process.pid}.jsonl`), 'a');
  }

  write(event, facts) {
    fs.writeSync(this.file, JSON.stringify({ event, ...facts }) + '\n');
  }
}

/* All complete lines of all processes of that name. */
function read(folder, name) {
  return fs.readdirSync(folder)
    .filter((file) => file.startsWith(name + '.') && file.endsWith('.jsonl'))
    .flatMap((file) => fs.readFileSync(path.join(folder, file), 'utf8').split('\n').slice(0, -1))
    .map((line) => JSON.parse(line));
}

module.exports = { Journal, read };
