"use strict";

/* A memory of key-value pairs in two forms: the cache of softmax attention, and the state of linear
   attention. The arithmetic is lsa's: `linear_attention` with its feature maps and decay,
   `delta_step` for the delta rule. Tests compare both.

   Words become random vectors. Values have length 1. Keys are so long that the score of a key with
   itself, k·k / sqrt(width), is SCORE. Keys may also be orthogonal, or those of a trained model,
   with the queries that read them. */

window.Recall ??= (() => {
  const SCORE = 12, EPS = 1e-6;
  const MAPS = {
    elu_plus_one: (x) => (x > 0 ? x + 1 : Math.exp(x)),
    relu: (x) => Math.max(x, 0),
    softplus: (x) => Math.log1p(Math.exp(x)),
    exp: Math.exp,
    identity: (x) => x,
  };
  // Loops, since with 64 pairs these two run some thousand times.
  function dot(a, b) {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
    return sum;
  }
  /* S^T f */
  function apply(S, f) {
    const o = Array(S[0].length).fill(0);
    for (let r = 0; r < f.length; r++) for (let c = 0; c < o.length; c++) o[c] += f[r] * S[r][c];
    return o;
  }
  const scaled = (a, factor) => a.map((x) => factor * x);
  const range = (n) => Array.from({ length: n }, (_, i) => i);

  /* The FNV-1a hash of a text, 32 bits. */
  const hash = (text) =>
    [...text].reduce((state, letter) => Math.imul(state ^ letter.codePointAt(0), 16777619), 2166136261) >>> 0;

  /* Repeatable numbers in (0, 1): the splitmix generator, 32 bits. */
  function uniform(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x9e3779b9) >>> 0;
      let z = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
      z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35);
      return (((z ^ (z >>> 16)) >>> 0) + 0.5) / 2 ** 32;
    };
  }

  /* A uniformly random unit vector. */
  function direction(text, width) {
    const next = uniform(hash(text));
    const x = range(width).map(() => Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next()));
    return scaled(x, dot(x, x) ** -0.5);
  }
  const value = (word, width) => direction(`value ${word}`, width);

  /* Unit vectors, each orthogonal to those before it; after `width` of them, from the start. */
  function orthogonal(words, width) {
    const found = [];
    for (const word of words) {
      const x = direction(`key ${word}`, width);
      for (const k of found.slice(width * Math.floor(found.length / width))) {
        const along = dot(k, x);
        for (let i = 0; i < width; i++) x[i] -= along * k[i];
      }
      found.push(scaled(x, dot(x, x) ** -0.5));
    }
    return found;
  }

  /* Settings: {width, map, decay, delta}. If weights can be negative, the normaliser could be zero.
     Then there is none, and features have length 1. */
  const normalized = ({ map, delta }) => !delta && map !== "identity";
  function features(x, settings) {
    const f = x.map(MAPS[settings.map]);
    const length = Math.sqrt(dot(f, f));
    return normalized(settings) || !length ? f : scaled(f, 1 / length);
  }

  const start = (width, columns) => ({
    S: range(width).map(() => Array(columns).fill(0)),
    z: Array(width).fill(0),
  });

  /* The state after one more pair: S += f u^T, with f the features of its key, and u the vector
     written for its value. */
  function write({ S, z }, f, v, { decay, delta }) {
    const known = delta ? scaled(apply(S, f), decay) : null;
    const u = delta ? v.map((x, c) => x - known[c]) : v;
    const after = (row, r) => {
      const next = Array(u.length);
      for (let c = 0; c < u.length; c++) next[c] = decay * row[c] + f[r] * u[c];
      return next;
    };
    return { S: S.map(after), z: z.map((x, r) => decay * x + f[r]), u };
  }

  /* The state's answer to a query with features f. */
  function read({ S, z }, f, settings) {
    if (!normalized(settings)) return apply(S, f);
    const scale = f.length ** -0.5, q = scaled(f, scale);
    return scaled(apply(S, q), 1 / (dot(q, z) + EPS));
  }

  /* The weights that softmax attention gives the keys of its cache. */
  function softmax(q, keys) {
    const scores = keys.map((k) => dot(q, k) / Math.sqrt(q.length)), most = Math.max(...scores);
    const weights = scores.map((score) => Math.exp(score - most));
    return scaled(weights, 1 / weights.reduce((a, b) => a + b, 0));
  }
  const mean = (weights, values) => apply(values, weights);

  /* The value nearest to an answer, the oldest if several are equal; all have length 1. */
  function nearest(o, values) {
    const scores = values.map((v) => dot(o, v)), most = Math.max(...scores) - 1e-9;
    return scores.findIndex((score) => score >= most);
  }

  /* Vectors of the words: {k, q, v, cached: {k, q}}, that is key, query and value, and key and
     query of the cache. `keys` is "random", "orthogonal", or a trained model's, {state: {k, q},
     cache: {k, q}}. */
  function pairs(words, { width, keys = "random" }) {
    const names = [...new Set(words.map(([word]) => word))];
    const long = Math.sqrt(SCORE * Math.sqrt(width)), trained = typeof keys === "object";
    const made = trained
      ? null
      : keys === "orthogonal"
      ? orthogonal(names, width)
      : names.map((word) => direction(`key ${word}`, width));
    const vectors = names.map((_, i) => {
      if (trained) {
        const [state, cached] = [keys.state, keys.cache].map(({ k, q }) => ({ k: k[i], q: q[i] }));
        return { ...state, cached };
      }
      const k = scaled(made[i], long);
      return { k, q: k, cached: { k, q: k } };
    });
    return words.map(([word, said]) => ({ ...vectors[names.indexOf(word)], v: value(said, width) }));
  }

  /* All states, from the empty one. `shares` has the same sums for every state with an axis for
     each value: since a state is linear in its values, o = sum_j read(shares)_j v_j. */
  function memory(list, settings) {
    const states = [{ ...start(settings.width, settings.width), u: null }],
      shares = [start(settings.width, list.length)];
    list.forEach(({ k, v }, i) => {
      const f = features(k, settings), axis = list.map((_, j) => Number(i === j));
      states.push({ ...write(states[i], f, v, settings), f });
      shares.push(write(shares[i], f, axis, settings));
    });
    return { states, shares };
  }

  return { MAPS, normalized, features, pairs, memory, read, softmax, mean, nearest };
})();
