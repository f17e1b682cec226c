"use strict";

/* Five layers with small fixed weights, computed here. A token is changed; each cell shows whether
   that output changed. */

{
  const { element } = Stage;
  const TEXT = [..."penguin"], ALPHABET = [..."abcdefghijklmnopqrstuvwxyz"], D = 4;

  const next = Stage.random(11);
  const matrix = () => Array.from({ length: D }, () => Array.from({ length: D }, () => 2 * next() - 1));
  const embedding = new Map(ALPHABET.map((letter) => [letter, matrix()[0]]));
  const [WQ, WK, WV, W, U] = Array.from({ length: 5 }, matrix);
  const windows = [matrix(), matrix(), matrix()];

  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  const times = (M, x) => M.map((row) => dot(row, x));
  const add = (a, b) => a.map((x, i) => x + b[i]);
  const scale = (a, c) => a.map((x) => x * c);
  const zero = Array(D).fill(0);
  const phi = (x) => x.map((a) => (a > 0 ? a + 1 : Math.exp(a)));

  function attend(x, sim, end) {
    const [q, k, v] = [WQ, WK, WV].map((M) => x.map((one) => times(M, one)));
    return x.map((_, i) => {
      let top = zero, bottom = 0;
      for (let j = 0; j <= end(i, x.length); j++) {
        const weight = sim(q[i], k[j]);
        top = add(top, scale(v[j], weight));
        bottom += weight;
      }
      return scale(top, 1 / bottom);
    });
  }

  const softmax = (q, k) => Math.exp(dot(q, k) / Math.sqrt(D));
  const linear = (q, k) => dot(phi(q), phi(k));
  const layers = {
    "Non-causal softmax": (x) => attend(x, softmax, (_, t) => t - 1),
    "Causal softmax": (x) => attend(x, softmax, (i) => i),
    "Linear attention": (x) => attend(x, linear, (i) => i),
    RNN: (x) => {
      let s = zero;
      return x.map((one) => times(U, s = add(times(W, s).map(Math.tanh), one)));
    },
    "3-gram": (x) =>
      x.map((_, i) =>
        windows.reduce((sum, M, back) => (i >= back ? add(sum, times(M, x[i - back])) : sum), zero).map(
          Math.tanh,
        )
      ),
  };

  const read = (text) => text.map((letter) => embedding.get(letter));
  const before = Stage.mapped(layers, (layer) => layer(read(TEXT)));

  Stage.mount("causality", (stage) => {
    let chosen = 2, letter = "x";
    const head = TEXT.map((_, i) => element("button", { type: "button", onclick: () => choose(i) }));
    const rows = Object.keys(layers).map((name) => {
      const cells = TEXT.map(() => element("td", {}, element("span")));
      return { name, cells, row: element("tr", {}, element("th", { scope: "row" }, name), cells) };
    });
    const line = element("p", { class: "stage-line", role: "status" });
    const table = element(
      "table",
      { class: "causality" },
      element(
        "thead",
        {},
        element(
          "tr",
          {},
          element("th", { scope: "col" }, "Token"),
          head.map((button) => element("th", { scope: "col" }, button)),
        ),
      ),
      element("tbody", {}, rows.map(({ row }) => row)),
    );

    function choose(
      i,
      to = i === chosen ? ALPHABET[(ALPHABET.indexOf(letter) + 1) % ALPHABET.length] : letter,
    ) {
      chosen = (i + TEXT.length) % TEXT.length;
      letter = to === TEXT[chosen] ? ALPHABET[(ALPHABET.indexOf(to) + 1) % ALPHABET.length] : to;
      render();
    }

    function render() {
      const text = TEXT.map((old, i) => (i === chosen ? letter : old));
      head.forEach((button, i) => {
        button.textContent = text[i];
        button.setAttribute("aria-pressed", i === chosen);
        button.setAttribute(
          "aria-label",
          `Token ${i + 1}, ${text[i]}${i === chosen ? `, was ${TEXT[i]}` : ""}`,
        );
        button.tabIndex = i === chosen ? 0 : -1;
      });
      const moves = rows.map(({ name, cells }) => {
        const after = layers[name](read(text));
        const moved = after.map((y, i) =>
          Math.max(...y.map((value, d) => Math.abs(value - before[name][i][d]))) > 1e-9
        );
        cells.forEach((cell, i) => {
          cell.className = moved[i] ? "moved" : "";
          cell.firstChild.textContent = moved[i] ? "●" : "·";
          cell.firstChild.setAttribute("aria-label", moved[i] ? "moved" : "same");
          cell.firstChild.setAttribute("role", "img");
        });
        return `${name} ${moved.filter(Boolean).length}`;
      });
      line.textContent = `Token ${chosen + 1} changed from ${
        TEXT[chosen]
      } to ${letter}. Outputs that moved: ${moves.join(", ")}.`;
    }

    table.addEventListener("keydown", (event) => {
      const at = { ArrowLeft: chosen - 1, ArrowRight: chosen + 1, Home: 0, End: TEXT.length - 1 }[event.key];
      const turn = { ArrowUp: 1, ArrowDown: -1 }[event.key];
      if ((at === undefined && !turn) || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      const n = ALPHABET.length;
      if (turn) {
        let to = letter;
        do to = ALPHABET[(ALPHABET.indexOf(to) + turn + n) % n]; while (to === TEXT[chosen]);
        choose(chosen, to);
      } else choose(at, letter);
      head[chosen].focus();
    });
    stage.append(
      element(
        "p",
        {},
        "Choose a token to change it; choose it again for another letter. ",
        "With the keyboard: left and right choose, up and down change the letter.",
      ),
      table,
      line,
    );
    render();
    return { token: [Stage.whole((n) => choose(n - 1, "x"), () => chosen + 1, 1, TEXT.length), 3] };
  });
}
