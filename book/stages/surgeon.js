"use strict";

/* Operations on a state of linear attention in a model of writers.js: subtracting words that it has
   read, or adding a share of another text's state. Tests compare them with lsa. */

window.Surgeon ??= (() => {
  const copy = (state) => state.map((heads) => heads.map(({ S, z }) => ({ S: S.slice(), z: z.slice() })));
  const length = (all) => Math.sqrt(all.reduce((sum, value) => sum + value * value, 0));

  /* A text read letter by letter, and the products that each letter added to the state. The last
     letter is read after the operations, so that its output depends on them. */
  class Reading {
    constructor(machine, bytes) {
      Object.assign(this, { machine, state: machine.start(), put: [], bytes: [] });
      for (const byte of bytes) this.push(byte);
    }

    push(byte) {
      if (this.bytes.length) {
        const one = this.state.map(() => []);
        this.machine.read(this.state, this.bytes.at(-1), (layer, head, k, v) => {
          one[layer][head] = { f: Float64Array.from(k, Writers.phi), v: v.slice() };
        });
        this.put.push(one);
      }
      this.bytes.push(byte);
    }

    /* The sum of the outer products of letters from..to as a state, decayed up to now. */
    products(from, to) {
      const { put, machine: { slopes } } = this, sums = this.machine.start();
      put.slice(from, to).forEach((one, i) =>
        one.forEach((heads, layer) =>
          heads.forEach(({ f, v }, head) => {
            const { S, z } = sums[layer][head], keep = Math.exp(slopes[head] * (put.length - 1 - from - i));
            f.forEach((value, r) => {
              z[r] += keep * value;
              for (let c = 0; c < v.length; c++) S[r * v.length + c] += keep * value * v[c];
            });
          })
        )
      );
      return sums;
    }

    /* The state and the next letter's logits, after adding `share` of another state and reading the
       last letter. */
    operated(other, share) {
      const state = copy(this.state);
      state.forEach((heads, layer) =>
        heads.forEach(({ S, z }, head) => {
          const { S: more, z: rest } = other[layer][head];
          for (let i = 0; i < S.length; i++) S[i] += share * more[i];
          for (let i = 0; i < z.length; i++) z[i] += share * rest[i];
        })
      );
      return { state, logits: this.machine.read(state, this.bytes.at(-1)).slice() };
    }

    get whole() {
      return this.operated(this.state, 0);
    }

    /* The size of another state relative to this one, by head: the mean over layers. */
    sizes(other) {
      const { state } = this, ratio = (i, head) => length(other[i][head].S) / length(state[i][head].S);
      return state[0].map((_, head) => state.reduce((sum, _, i) => sum + ratio(i, head), 0) / state.length);
    }
  }

  /* The part of the next letter's probability that moved from some letters to others. */
  const moved = (before, after) => before.reduce((sum, share, i) => sum + Math.abs(share - after[i]), 0) / 2;

  /* Start and end of each word of a text, without the last letter. */
  const wordsOf = (bytes) =>
    [...String.fromCharCode(...bytes.slice(0, -1)).matchAll(/[A-Za-z0-9'\u0080-\u00ff-]+/g)]
      .map(({ 0: word, index }) => [index, index + word.length]);

  return { Reading, moved, wordsOf };
})();
