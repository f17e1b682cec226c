"use strict";

/* A trained nano GPT of lsa as a state machine in JavaScript: one letter a tick, with softmax
   attention and a cache of all letters or the last, or with elu + 1 and a state. Weights are read
   from the files that the race stores (`experiments.harness.learning.weights.pack_weights`). Tests
   compare all with lsa. */

window.Writers ??= (() => {
  const NORM_EPS = 1e-5, EPS = 1e-6, ROOM = 256;
  const range = (n) => Array.from({ length: n }, (_, i) => i);

  /* The state dictionary in a .npz: matrices are int8 rows, each times its scale. */
  async function open(buffer) {
    const arrays = await Stored.arrays(buffer);
    return Object.fromEntries(
      Object.entries(arrays).filter(([name]) => !name.endsWith(".scale")).map(([name, values]) => {
        const scale = arrays[`${name}.scale`], width = scale && values.length / scale.length;
        return [
          name,
          scale ? new Float32Array(values).map((value, i) => value * scale[Math.floor(i / width)]) : values,
        ];
      }),
    );
  }

  /* y = W x + b, W row by row. Four sums, so that products do not wait for each other. */
  function affine(W, b, x, y) {
    const n = x.length;
    for (let r = 0, at = 0; r < y.length; r++) {
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0;
      for (let c = 0; c < n; c += 4, at += 4) {
        s0 += W[at] * x[c];
        s1 += W[at + 1] * x[c + 1];
        s2 += W[at + 2] * x[c + 2];
        s3 += W[at + 3] * x[c + 3];
      }
      y[r] = s0 + s1 + s2 + s3 + (b ? b[r] : 0);
    }
    return y;
  }

  function norm(x, weight, bias, y) {
    const mean = x.reduce((a, b) => a + b, 0) / x.length;
    const variance = x.reduce((a, b) => a + (b - mean) ** 2, 0) / x.length,
      by = 1 / Math.sqrt(variance + NORM_EPS);
    for (let i = 0; i < x.length; i++) y[i] = (x[i] - mean) * by * weight[i] + bias[i];
    return y;
  }

  const gelu = (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

  const phi = (x) => (x > 0 ? x + 1 : Math.exp(x)); // elu + 1

  /* Softmax attention to the last `near` letters and the `first`. Letter t is in row t, and from
     first + near on in the row of the letter that leaves the window. */
  function cached({ window: near = Infinity, first = 0 } = {}) {
    const rows = first + near, room = Math.min(rows, ROOM);
    return {
      start: (width) => ({
        k: new Float32Array(room * width),
        v: new Float32Array(room * width),
        scores: new Float64Array(room),
        length: 0,
      }),
      step(cache, q, k, v, slope, o) {
        const width = q.length, t = cache.length++, n = Math.min(t + 1, rows);
        const at = t < rows ? t : first + (t - first) % near;
        if (n > cache.scores.length) {
          const arrays = Object.entries(cache).filter(([, one]) => one.length);
          for (const [name, { constructor, length }] of arrays) {
            const wider = new constructor(2 * length);
            wider.set(cache[name]);
            cache[name] = wider;
          }
        }
        cache.k.set(k, at * width);
        cache.v.set(v, at * width);
        const { k: keys, v: values, scores } = cache, scale = width ** -0.5;
        let most = -Infinity, sum = 0;
        for (let j = 0, i = 0; j < n; j++) {
          let s0 = 0, s1 = 0;
          for (let c = 0; c < width; c += 2, i += 2) {
            s0 += q[c] * keys[i];
            s1 += q[c + 1] * keys[i + 1];
          }
          const age = j < first || t - j < near ? t - j : (t - j) % near;
          scores[j] = (s0 + s1) * scale + slope * age;
          if (scores[j] > most) most = scores[j];
        }
        o.fill(0);
        for (let j = 0, i = 0; j < n; j++) {
          const weight = Math.exp(scores[j] - most);
          sum += weight;
          for (let c = 0; c < width; c++, i++) o[c] += weight * values[i];
        }
        for (let c = 0; c < width; c++) o[c] /= sum;
      },
      kept: (width, t) => 2 * width * (near < Infinity ? rows : t),
      products: (width, t) => 2 * width * Math.min(t, rows),
    };
  }

  /* Heads as machines: start(width) returns a state; step(state, q, k, v, slope, o) is a tick,
     which changes the state and writes o. slope: log of the factor by which weights decay per
     letter. */
  const HEADS = {
    softmax: cached,
    window: cached,
    linear: () => ({
      start: (width) => ({ S: new Float32Array(width * width), z: new Float32Array(width) }),
      step({ S, z }, q, k, v, slope, o) {
        const width = q.length, keep = Math.exp(slope), scale = width ** -0.5;
        let sum = EPS;
        o.fill(0);
        for (let r = 0, i = 0; r < width; r++) {
          const f = phi(k[r]), g = phi(q[r]) * scale;
          z[r] = keep * z[r] + f;
          sum += g * z[r];
          for (let c = 0; c < width; c++, i++) {
            S[i] = keep * S[i] + f * v[c];
            o[c] += g * S[i];
          }
        }
        for (let c = 0; c < width; c++) o[c] /= sum;
      },
      kept: (width) => width * (width + 1),
      products: (width) => 2 * width * width,
    }),
  };

  /* The machine of a GPT. weights: from `open`; kind: of its heads; slopes: one for each head;
     options: window and first, of a window. start() is the empty state; restore({S, z}) that of
     linear attention, from the flat arrays of all layers; read(state, letter, note) the next letter's
     logits, valid until the next tick, with note(layer, head, k, v) called for what each head stores;
     kept(t) and products(t) count the numbers stored after t letters and the multiplications for the
     next letter. */
  function machine(weights, kind, slopes, options = {}) {
    const { start, step, kept, products } = HEADS[kind](options);
    const wte = weights["wte.weight"], width = weights["ln_f.weight"].length, wide = width / slopes.length;
    const layers = range(
      1 + Math.max(...Object.keys(weights).map((name) => Number(name.match(/^h\.(\d+)/)?.[1] ?? -1))),
    );
    const blocks = layers.map((i) => (name) => weights[`h.${i}.${name}`]);
    const [x, y, o, qkv, hidden] = [1, 1, 1, 3, 4].map((n) => new Float64Array(n * width));
    const logits = new Float64Array(wte.length / width);
    const part = (x, head, which = 0) => x.subarray(which * width + head * wide).subarray(0, wide);
    const parts = slopes.map((_, head) => [...[0, 1, 2].map((n) => part(qkv, head, n)), part(o, head)]);
    const add = () =>
      x.forEach((_, i) => {
        x[i] += y[i];
      });

    function read(state, letter, note = null) {
      x.set(wte.subarray(letter * width, (letter + 1) * width));
      blocks.forEach((of, i) => {
        norm(x, of("ln_1.weight"), of("ln_1.bias"), y);
        affine(of("attn.c_attn.weight"), of("attn.c_attn.bias"), y, qkv);
        parts.forEach(([q, k, v, out], head) => {
          note?.(i, head, k, v);
          step(state[i][head], q, k, v, slopes[head], out);
        });
        affine(of("attn.c_proj.weight"), of("attn.c_proj.bias"), o, y);
        add();
        norm(x, of("ln_2.weight"), of("ln_2.bias"), y);
        affine(of("mlp.c_fc.weight"), of("mlp.c_fc.bias"), y, hidden);
        for (let j = 0; j < hidden.length; j++) hidden[j] = gelu(hidden[j]);
        affine(of("mlp.c_proj.weight"), of("mlp.c_proj.bias"), hidden, y);
        add();
      });
      return affine(wte, null, norm(x, weights["ln_f.weight"], weights["ln_f.bias"], y), logits);
    }

    const heads = layers.length * slopes.length, fixed = 12 * layers.length * width * width + wte.length;
    const place = (all, size, i, head) => {
      const at = (i * slopes.length + head) * size;
      return all.slice(at, at + size);
    };
    return {
      slopes,
      start: () => layers.map(() => slopes.map(() => start(wide))),
      restore: ({ S, z }) =>
        layers.map((i) =>
          slopes.map((_, head) => ({ S: place(S, wide * wide, i, head), z: place(z, wide, i, head) }))
        ),
      read,
      kept: (t) => heads * kept(wide, t),
      products: (t) => fixed + heads * products(wide, t),
    };
  }

  /* Probabilities of the letters at a temperature; at 0 the likeliest has 1. */
  function probabilities(logits, temperature) {
    const most = Math.max(...logits);
    if (!temperature) return Array.from(logits, (_, i) => Number(i === logits.indexOf(most)));
    const weights = Array.from(logits, (value) => Math.exp((value - most) / temperature));
    const sum = weights.reduce((a, b) => a + b, 0);
    return weights.map((weight) => weight / sum);
  }

  /* The letter at a point of [0, 1), with the probabilities end to end. */
  function drawn(shares, place) {
    let before = 0;
    const found = shares.findIndex((share) => (before += share) > place);
    return found < 0 ? shares.indexOf(Math.max(...shares)) : found;
  }

  return { open, phi, machine, probabilities, drawn };
})();
