"use strict";

/* Data of `look_inside` for one page of text: where every head looks, and the model's guesses when
   the passage returns, with some heads confined. Tests compare it with lsa. */

window.Looks ??= (() => {
  const SHARE = 1000; // shares are stored in thousandths

  /* A page's arrays. layers, heads, tokens: their numbers; passage: tokens that return. */
  function open({ counts, places, low, high, guesses, shares, wanted }, { heads, tokens, passage }) {
    const starts = new Uint32Array(counts.length + 1), likeliest = guesses.length / wanted.length;
    counts.forEach((count, row) => (starts[row + 1] = starts[row] + count));

    /* [[token looked at, weight]] of one token and head, the first token first, above a least
       weight. */
    function look(layer, head, token) {
      const row = (layer * heads + head) * tokens + token;
      const found = [];
      for (let i = starts[row]; i < starts[row + 1]; i++) {
        found.push([places[i], (low[i] + 256 * high[i]) / SHARE]);
      }
      return found;
    }

    /* Guesses for token i of the passage by the set of heads in that row of `sets`:
       [[row in the vocabulary, share]], likeliest first, and the share of the token itself. */
    function guess(set, i) {
      const at = set * passage + i;
      const best = Array.from({ length: likeliest }, (_, j) => at * likeliest + j);
      return {
        best: best.map((j) => [guesses[j], shares[j] / SHARE]),
        wanted: wanted[at] / SHARE,
      };
    }

    return { look, guess };
  }

  return { open };
})();
