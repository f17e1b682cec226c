"use strict";

/* The memory lab without its pictures: a list of pairs, and the answers of two memories. */

window.MemoryLab ??= (() => {
  const FIRST = { width: 8, keys: "positive", map: "elu_plus_one", decay: 1, delta: false };
  const range = (n) => Array.from({ length: n }, (_, i) => i);
  const percent = (share) => `${Math.round(100 * share) || 0}`.replace("-", "−");

  /* A list of pairs, written into both memories, and their answers. */
  class Lab {
    settings = { ...FIRST };
    trained = null; // keys of models, {state, cache}, when they are loaded
    asked = 0; // the index of the pair whose key is asked for

    /* words: the list of pairs; settings: those that change. */
    set(words, settings) {
      this.words = words;
      const { keys, map, ...rest } = Object.assign(this.settings, settings);
      const signed = keys === "signed" || keys === "orthogonal";
      this.rules = { ...rest, map: signed ? "identity" : map, keys: keys === "orthogonal" ? keys : "random" };
      if (keys === "trained") {
        Object.assign(this.rules, { keys: this.trained, width: this.trained.state.k[0].length });
      }
      this.normalized = Recall.normalized(this.rules);
      this.pairs = Recall.pairs(words, this.rules);
      this.values = this.pairs.map(({ v }) => v);
      Object.assign(this, Recall.memory(this.pairs, this.rules)); // its states and shares
      this.last = null;
    }

    /* After n pairs, with the key of pair i: its features, both answers, the weight of each stored
       value in them, and the nearest value to each. */
    ask(i, n) {
      const { words, pairs, rules, states, shares } = this;
      const seen = this.values.slice(0, n), f = Recall.features(pairs[i].q, rules);
      const cache = Recall.softmax(pairs[i].cached.q, pairs.slice(0, n).map(({ cached }) => cached.k));
      const o = Recall.read(states[n], f, rules);
      const name = (answer) => words[Recall.nearest(answer, seen)][1];
      const wanted = words.slice(0, n).findLast(([key]) => key === words[i][0])[1];
      const one = (weights, said) => ({ weights, said, right: said === wanted });
      return {
        f,
        o,
        wanted,
        cache: one(cache, name(Recall.mean(cache, seen))),
        state: one(Recall.read(shares[n], f, rules).slice(0, n), name(o)),
      };
    }

    /* The pair asked for after n pairs, or the last pair if that is not written yet. */
    here = (n) => Math.min(this.asked, n - 1);

    /* Answers to each key written so far, null for one that is written again later, and the number
       of keys for which a memory returns the newest value. */
    told(n) {
      if (this.last?.n === n) return this.last;
      const keys = this.words.slice(0, n).map(([key]) => key);
      const answers = keys.map((key, i) => keys.lastIndexOf(key) === i ? this.ask(i, n) : null);
      const all = answers.filter(Boolean), right = (name) => all.filter((one) => one[name].right).length;
      return this.last = { n, answers, of: all.length, cache: right("cache"), state: right("state") };
    }

    formula() {
      const { rules, normalized } = this,
        γ = rules.decay < 1 ? `${rules.decay} ` : "",
        k = "φ(k)";
      const added = rules.delta ? `${k} (v − ${γ}Sᵀ${k})ᵀ` : `${k} vᵀ`;
      return `S ← ${γ}S + ${added}, `
        + (normalized ? `z ← ${γ}z + ${k}, o = Sᵀφ(q) / (z·φ(q) + ε)` : "o = Sᵀφ(q), |φ| = 1");
    }

    said = (n) => {
      if (!n) return "Nothing is written yet. Softmax’s cache is empty, and linear’s state is zero.";
      const { words } = this,
        here = this.here(n),
        { wanted, cache, state } = this.ask(here, n),
        { of, ...right } = this.told(n);
      const at = range(n).findLast((i) => words[i][0] === words[here][0]),
        pairsOf = n === 1 ? "1 pair" : `${n} pairs`;
      const held = percent(state.weights[at]),
        there = this.normalized ? `linear ${held}%` : `linear’s answer holds ${held}% of it`;
      return `${pairsOf}. Asked for ${words[here][0]}, softmax gives ${wanted} ${
        percent(cache.weights[at])
      }% of the weight, ${there}${state.right ? "" : `, and its answer is nearer to ${state.said}`}. `
        + `Linear is right for ${right.state} of ${of} keys, softmax for ${right.cache}.`;
    };
  }

  return { FIRST, Lab, percent, range };
})();
