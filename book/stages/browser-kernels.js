"use strict";

/* Softmax and linear attention of one head in plain JavaScript, and their timing. The stage
   `browser-speed` loads this when its button is pressed and passes both functions to a worker as
   text, so neither may use anything outside itself. Tests compare the kernels with lsa; so does the
   reader's page before it measures.

   Inputs are Float32Arrays of whole tiles: `padded` tokens, zeros after the last.
   The normaliser's eps is lsa's. */

window.BrowserKernels ??= (() => {
  function kernels() {
    const TILE = 64, CHUNK = 32, EPS = 1e-6;
    const padded = (T) => Math.ceil(T / TILE) * TILE;
    const late = (deadline) => performance.now() > deadline;

    /* out[i, j] += sum over l < depth of a[i, l] b[l, j], in blocks of 4 rows and 2 columns that
       stay in registers. An operand is [array, start, step of its first index, of its second]. */
    function product(
      rows,
      columns,
      depth,
      [a, aStart, aRow, aStep],
      [b, bStart, bStep, bColumn],
      [c, cStart, cRow],
    ) {
      for (let i = 0; i < rows; i += 4) {
        for (let j = 0; j < columns; j += 2) {
          let x = aStart + i * aRow, y = bStart + j * bColumn;
          let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
          for (let l = 0; l < depth; l++) {
            const left = b[y], right = b[y + bColumn];
            const a0 = a[x], a1 = a[x + aRow], a2 = a[x + 2 * aRow], a3 = a[x + 3 * aRow];
            s0 += a0 * left;
            s1 += a1 * left;
            s2 += a2 * left;
            s3 += a3 * left;
            t0 += a0 * right;
            t1 += a1 * right;
            t2 += a2 * right;
            t3 += a3 * right;
            x += aStep;
            y += bStep;
          }
          const at = cStart + i * cRow + j;
          c[at] += s0;
          c[at + cRow] += s1;
          c[at + 2 * cRow] += s2;
          c[at + 3 * cRow] += s3;
          c[at + 1] += t0;
          c[at + cRow + 1] += t1;
          c[at + 2 * cRow + 1] += t2;
          c[at + 3 * cRow + 1] += t3;
        }
      }
    }

    function divide(o, sums, from, rows, d) {
      for (let i = 0; i < rows; i++) {
        for (let x = 0; x < d; x++) o[(from + i) * d + x] /= sums[i];
      }
    }

    /* Weights that are not of the past become 0; the others of each row are added to its sum. */
    function addUp(weights, size, sums, diagonal) {
      for (let row = 0, at = 0; row < size; row++, at += size) {
        if (diagonal) weights.fill(0, at + row + 1, at + size);
        for (let column = 0; column < size; column++) sums[row] += weights[at + column];
      }
    }

    /* Products of all queries with the keys of their past, tile by tile; T x T products are never
       stored. `weigh(products, sums, i, j)` turns a tile's products into weights, in place. */
    function byTiles({ q, k, v, o, T, d }, deadline, eps, weigh) {
      const products = new Float32Array(TILE * TILE), sums = new Float64Array(TILE);
      for (let i = 0; i < T; i += TILE) {
        if (late(deadline)) return false;
        o.fill(0, i * d, (i + TILE) * d);
        sums.fill(eps);
        for (let j = 0; j <= i; j += TILE) {
          products.fill(0);
          product(TILE, TILE, d, [q, i * d, d, 1], [k, j * d, 1, d], [products, 0, TILE]);
          weigh?.(products, sums, i, j);
          addUp(products, TILE, sums, i === j);
          product(TILE, d, TILE, [products, 0, TILE, 1], [v, j * d, d, 1], [o, i * d, d]);
        }
        divide(o, sums, i, TILE, d);
      }
      return true;
    }

    /* Linear attention in attention mode. */
    const attention = (inputs, deadline = Infinity) => byTiles(inputs, deadline, EPS);

    /* The largest product so far is subtracted in the exponential, and the sums are rescaled. */
    function softmax(inputs, deadline = Infinity) {
      const { o, d } = inputs, scale = d ** -0.5, most = new Float64Array(TILE);
      return byTiles(inputs, deadline, 0, (products, sums, i, j) => {
        if (j === 0) most.fill(-Infinity);
        for (let row = 0, at = 0; row < TILE; row++, at += TILE) {
          const end = i === j ? row + 1 : TILE;
          let high = most[row];
          for (let column = 0; column < end; column++) high = Math.max(high, scale * products[at + column]);
          if (high > most[row]) {
            const fade = Math.exp(most[row] - high);
            sums[row] *= fade;
            for (let x = 0; x < d; x++) o[(i + row) * d + x] *= fade;
            most[row] = high;
          }
          for (let column = 0; column < end; column++) {
            products[at + column] = Math.exp(scale * products[at + column] - high);
          }
        }
      });
    }

    /* Adds a token to the state, and reads it: o = q S / (q z + eps). */
    function tick(S, z, q, k, v, o, at, d) {
      let sum = EPS;
      for (let a = 0; a < d; a++) {
        z[a] += k[at + a];
        sum += q[at + a] * z[a];
      }
      for (let x = 0; x < d; x += 4) {
        const v0 = v[at + x], v1 = v[at + x + 1], v2 = v[at + x + 2], v3 = v[at + x + 3];
        let o0 = 0, o1 = 0, o2 = 0, o3 = 0;
        for (let a = 0, s = x; a < d; a++, s += d) {
          const key = k[at + a], query = q[at + a];
          o0 += query * (S[s] += key * v0);
          o1 += query * (S[s + 1] += key * v1);
          o2 += query * (S[s + 2] += key * v2);
          o3 += query * (S[s + 3] += key * v3);
        }
        o[at + x] = o0 / sum;
        o[at + x + 1] = o1 / sum;
        o[at + x + 2] = o2 / sum;
        o[at + x + 3] = o3 / sum;
      }
    }

    function recurrent({ q, k, v, o, T, d }, deadline = Infinity) {
      const S = new Float32Array(d * d), z = new Float32Array(d);
      for (let t = 0; t < T; t++) {
        if (t % TILE === 0 && late(deadline)) return false;
        tick(S, z, q, k, v, o, t * d, d);
      }
      return true;
    }

    function chunked({ q, k, v, o, T, d }, deadline = Infinity) {
      const S = new Float32Array(d * d), z = new Float32Array(d);
      const products = new Float32Array(CHUNK * CHUNK), sums = new Float64Array(CHUNK);
      for (let i = 0; i < T; i += CHUNK) {
        if (late(deadline)) return false;
        const at = i * d;
        products.fill(0);
        product(CHUNK, CHUNK, d, [q, at, d, 1], [k, at, 1, d], [products, 0, CHUNK]);
        for (let row = 0; row < CHUNK; row++) {
          sums[row] = EPS;
          for (let x = 0; x < d; x++) sums[row] += q[at + row * d + x] * z[x];
        }
        addUp(products, CHUNK, sums, true);
        o.fill(0, at, at + CHUNK * d);
        product(CHUNK, d, d, [q, at, d, 1], [S, 0, d, 1], [o, at, d]);
        product(CHUNK, d, CHUNK, [products, 0, CHUNK, 1], [v, at, d, 1], [o, at, d]);
        divide(o, sums, i, CHUNK, d);
        product(d, d, CHUNK, [k, at, 1, d], [v, at, d, 1], [S, 0, d]);
        for (let x = 0; x < CHUNK * d; x++) z[x % d] += k[at + x];
      }
      return true;
    }

    /* The last token alone: softmax reads a cache of T keys, linear attention a state. */
    function softmaxToken({ q, k, v, o, T, d }) {
      const weights = new Float64Array(T), at = (T - 1) * d, scale = d ** -0.5;
      let high = -Infinity, sum = 0;
      for (let t = 0; t < T; t++) {
        let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (let x = 0, y = t * d; x < d; x += 4, y += 4) {
          s0 += q[at + x] * k[y];
          s1 += q[at + x + 1] * k[y + 1];
          s2 += q[at + x + 2] * k[y + 2];
          s3 += q[at + x + 3] * k[y + 3];
        }
        weights[t] = scale * (s0 + s1 + s2 + s3);
        high = Math.max(high, weights[t]);
      }
      for (let t = 0; t < T; t++) sum += weights[t] = Math.exp(weights[t] - high);
      for (let x = 0; x < d; x += 4) {
        let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (let t = 0, y = x; t < T; t++, y += d) {
          s0 += weights[t] * v[y];
          s1 += weights[t] * v[y + 1];
          s2 += weights[t] * v[y + 2];
          s3 += weights[t] * v[y + 3];
        }
        [s0, s1, s2, s3].forEach((s, i) => (o[at + x + i] = s / sum));
      }
      return true;
    }

    return { padded, softmax, attention, recurrent, chunked, tick, softmaxToken };
  }

  /* The same inputs as in Python: numbers in [-2, 2) of Numerical Recipes' generator, first q, k
     and v, then a weight for each feature. A check sums the outputs with these weights. */
  function draws(padded, T, d, seed) {
    let state = seed >>> 0;
    const next = () => (state = (Math.imul(1664525, state) + 1013904223) >>> 0) / 2 ** 30 - 2;
    const numbers = (rows, room) => new Float32Array(room * d).map((_, i) => (i < rows * d ? next() : 0));
    const [q, k, v] = [0, 1, 2].map(() => numbers(T, padded(T))), weights = numbers(1, 1);
    const features = (x) => x.map((value, i) => (i < T * d ? (value < 0 ? Math.exp(value) : value + 1) : 0));
    const inputs = (q, k) => ({ q, k, v, o: new Float32Array(padded(T) * d), T, d });
    return { weights, softmax: inputs(q, k), linear: inputs(features(q), features(k)) };
  }

  /* The largest difference of the kernels' results from lsa's reference. */
  function check({ padded, ...kernels }, draws, { tokens: T, width: d, seed, softmax, linear }) {
    const given = draws(padded, T, d, seed), expected = { softmax, linear };
    let most = 0;
    const compare = (name, of, from = 0) => {
      kernels[name](given[of]);
      for (let t = from; t < T; t++) {
        let sum = 0;
        for (let x = 0; x < d; x++) sum += given.weights[x] * given[of].o[t * d + x];
        most = Math.max(most, Math.abs(sum - expected[of][t]));
      }
    };
    compare("softmaxToken", "softmax", T - 1); // before softmax writes the same output
    compare("softmax", "softmax");
    for (const mode of ["attention", "recurrent", "chunked"]) compare(mode, "linear");
    return most;
  }

  /* Times everything at each length, in turns, in batches long enough for the browser's coarse
     clock. A mode that takes longer than `limit` seconds is stopped and left out at longer lengths.
     Calls tell({length}) before a length and tell({rows}) after it: {mode, pass, length, seconds,
     low, high}, with seconds null if it was stopped. */
  function clock({ padded, tick, softmaxToken, ...kernels }, draws, { lengths, width: d, limit }, tell) {
    const BATCH_MS = 20, ROUNDS = 5, LONG_MS = 500, stopped = new Set();

    /* Milliseconds of `times` calls; Infinity if one was stopped. */
    function batch(call, times) {
      const begin = performance.now();
      for (let i = 0; i < times; i++) if (!call(begin + 1000 * limit)) return Infinity;
      return performance.now() - begin;
    }

    function timed(T) {
      const { softmax, linear } = draws(padded, T, d, T), { q, k, v, o } = linear;
      const S = new Float32Array(d * d), z = new Float32Array(d), at = (T - 1) * d;
      const calls = [
        ...Object.entries({ softmax, attention: linear, recurrent: linear, chunked: linear })
          .map(([mode, inputs]) => ["forward", mode, (deadline) => kernels[mode](inputs, deadline)]),
        ["token", "softmax", () => softmaxToken(softmax)],
        ["token", "linear", () => (tick(S, z, q, k, v, o, at, d), true)],
      ].map(([pass, mode, call]) => ({ pass, mode, call, name: `${pass} ${mode}`, found: [], times: 1 }));
      for (const one of calls.filter(({ name }) => !stopped.has(name))) {
        // More than once: the first calls are not compiled yet, and any call may be delayed.
        let took = 0;
        for (let enough = 0; enough < 3 && took < LONG_MS; enough++) {
          took = batch(one.call, one.times);
          if (took < BATCH_MS) [one.times, enough] = [2 * one.times, -1];
        }
        if (took === Infinity) stopped.add(one.name);
        else if (took >= LONG_MS && one.times === 1) one.found.push(took);
      }
      const short = calls.filter(({ name, found }) => !found.length && !stopped.has(name));
      for (let round = 0; round < ROUNDS; round++) {
        for (const { call, times, found } of short) {
          const took = batch(call, times);
          if (took < Infinity) found.push(took / times);
        }
      }
      return calls.map(({ mode, pass, found }) => {
        found.sort((a, b) => a - b);
        const [low, seconds, high] = [0, found.length >> 1, found.length - 1]
          .map((i) => (found.length ? found[i] / 1000 : null));
        return { mode, pass, length: T, seconds, low, high };
      });
    }

    for (const length of lengths) {
      tell({ length });
      tell({ rows: timed(length) });
    }
    tell({ done: true });
  }

  /* The worker's program: it checks, then times. Its address is a blob's, since a page opened from
     a file may start no other worker. */
  function source(settings, reference) {
    return `"use strict";
const kernels = (${kernels})(), draws = ${draws};
postMessage({ difference: (${check})(kernels, draws, ${JSON.stringify(reference)}) });
(${clock})(kernels, draws, ${JSON.stringify(settings)}, postMessage);`;
  }

  return { kernels, draws, check, clock, source };
})();
