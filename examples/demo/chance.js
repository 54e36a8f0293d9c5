/* Random numbers from a seed, so that a storm can be run again. */
'use strict';

/* A generator of numbers from 0 up to 1: mulberry32 on a hash of the seed's text. */
function chance(seed) {
  let state = 0;
  for (const character of seed) {
    state = Math.imul(state, 31) + character.codePointAt(0) | 0;
  }
  return () => {
    state = state + 0x6d2b79f5 | 0;
    let t = Math.imul(state ^ state >>> 15, 1 | state);
    t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
    return ((t ^ t >>> 14) >>> 0) / 2 ** 32;
  };
}

module.exports = { chance };
