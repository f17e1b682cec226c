"use strict";

/* The memory lab without its pictures: a list of pairs, what two memories answer, in words too. */

window.MemoryLab ??= (() => {
  const FIRST = { width: 8, map: "elu_plus_one", decay: 1, delta: false };
  const range = (n) => Array.from({ length: n }, (_, i) => i);
  const percent = (share) => `${Math.round(100 * share) || 0}`.replace("-", "−");

  /* A list of pairs, written into both memories, and what these answer. */
  class Lab {
    settings = { ...FIRST };
    asked = 0; // the place of the pair whose key is asked for

    /* words: the list of pairs; settings: what changes of them. */
    set(words, settings) {
      this.words = words;
      Object.assign(this.settings, settings);
      this.pairs = Recall.pairs(this.words, this.settings);
      Object.assign(this, Recall.memory(this.pairs, this.settings)); // its states and shares
    }

    /* After n pairs, asked for the key of pair i: its features, the two answers, the weight of each
       stored value in them, and the value that they are nearest to. */
    ask(i, n) {
      const { words, pairs, settings, states, shares } = this;
      const seen = pairs.slice(0, n),
        values = seen.map((pair) => pair.v),
        f = Recall.features(pairs[i].k, settings);
      const cache = Recall.softmax(pairs[i].k, seen.map(({ k }) => k)),
        o = Recall.read(states[n], f, settings);
      const name = (answer) => words[Recall.nearest(answer, values)][1];
      const wanted = words.slice(0, n).findLast(([key]) => key === words[i][0])[1];
      return {
        f,
        o,
        wanted,
        cache: { weights: cache, said: name(Recall.mean(cache, values)) },
        state: { weights: Recall.read(shares[n], f, settings).slice(0, n), said: name(o) },
      };
    }

    /* The pair asked for after n pairs: the last of them, where it is not written yet. */
    here = (n) => Math.min(this.asked, n - 1);

    rewritten = (i, n) => this.words.slice(i + 1, n).some(([key]) => key === this.words[i][0]);

    /* Of the keys written so far, how many a memory answers with what they were given last. */
    score(n) {
      const all = range(n).filter((i) => !this.rewritten(i, n)).map((i) => this.ask(i, n));
      const right = (name) => all.filter((answer) => answer[name].said === answer.wanted).length;
      return { of: all.length, cache: right("cache"), state: right("state") };
    }

    formula() {
      const { settings } = this,
        γ = settings.decay < 1 ? `${settings.decay} ` : "",
        k = "φ(k)",
        unit = Recall.normalized(settings) ? "" : ", |φ| = 1";
      const added = settings.delta ? `${k} (v − ${γ}Sᵀ${k})ᵀ` : `${k} vᵀ`;
      return `S ← ${γ}S + ${added}, `
        + (unit ? `o = Sᵀφ(q)${unit}` : `z ← ${γ}z + ${k}, o = Sᵀφ(q) / (z·φ(q) + ε)`);
    }

    said(n) {
      if (!n) return "Nothing is written. The cache is empty and the state is zero.";
      const { words } = this,
        here = this.here(n),
        { wanted, cache, state } = this.ask(here, n),
        { of, ...right } = this.score(n);
      const at = range(n).findLast((i) => words[i][0] === words[here][0]),
        pairsOf = n === 1 ? "1 pair" : `${n} pairs`;
      const held = percent(state.weights[at]),
        there = Recall.normalized(this.settings)
          ? `the state ${held}%`
          : `the state's answer holds ${held}% of it`;
      return `${pairsOf}. Asked for ${words[here][0]}, the cache gives ${wanted} ${
        percent(cache.weights[at])
      }% of the weight, ${there}`
        + `${
          state.said === wanted ? "" : `, and its answer is nearer to ${state.said}`
        }. Right for ${right.state} of ${of} keys; the cache, ${right.cache}.`;
    }
  }

  return { FIRST, Lab, percent, range };
})();
