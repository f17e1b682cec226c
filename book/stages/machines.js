"use strict";

/* Four machines of width D read one text. The states are computed, and drawn with a square for each
   number, darker for a larger one. Work is counted as in lsa.cost: two for a multiply-add. */

{
  const { element, svg } = Stage;
  const TEXT = [..."I like penguins"], T = TEXT.length, D = 4, CELL = 8, LINE = 36;

  const next = Stage.random(5);
  const matrix = () => Array.from({ length: D }, () => Array.from({ length: D }, () => 2 * next() - 1));
  const letters = new Map();
  const embed = (letter) => letters.get(letter) ?? letters.set(letter, matrix()[0]).get(letter);
  const [WK, WV, W] = [matrix(), matrix(), matrix()];
  const times = (M, x) => M.map((row) => row.reduce((sum, a, i) => sum + a * x[i], 0));
  const phi = (x) => x.map((a) => (a > 0 ? a + 1 : Math.exp(a)));

  /* After each tick: columns of numbers, in the order of memory. */
  const columns = {
    tape: [[]],
    cache: [[]],
    rnn: [[Array(D).fill(0)]],
    linear: [Array.from({ length: D + 1 }, () => Array(D).fill(0))],
  };
  TEXT.forEach((letter) => {
    const x = embed(letter), k = times(WK, x), v = times(WV, x), f = phi(k);
    columns.tape.push([...columns.tape.at(-1), x]);
    columns.cache.push([...columns.cache.at(-1), [...k, ...v]]);
    const [s] = columns.rnn.at(-1);
    columns.rnn.push([times(W, s).map((a, i) => Math.tanh(a) + x[i])]);
    const last = columns.linear.at(-1);
    columns.linear.push([
      ...last.slice(0, D).map((column, i) => column.map((a, j) => a + f[j] * v[i])),
      last[D].map((a, j) => a + f[j]),
    ]);
  });

  /* rows: the height of the picture, the same for neighbours. */
  const machines = {
    tape: {
      name: "Attention tape",
      rows: 2 * D,
      color: "--attention",
      work: (t) => 8 * t * D * D + 2 * t * (t + 1) * D,
    },
    cache: { name: "KV cache", rows: 2 * D, color: "--softmax", work: (t) => 8 * D * D + 4 * t * D },
    rnn: { name: "RNN", rows: D, color: "--rnn", work: () => 4 * D * D },
    linear: { name: "Linear attention", rows: D, color: "--linear", work: () => 8 * D * D + 4 * D * D },
  };
  const most = machines.tape.work(T);
  const span = Math.max(...Object.values(columns).flat(3).map(Math.abs));
  const shade = (value) => 0.15 + 0.85 * Math.sqrt(Math.abs(value) / span);

  Stage.mount("machines", (stage) => {
    const text = TEXT.map((letter) => element("span", {}, letter));
    const panels = Object.entries(machines).map(([key, { name, rows, color, work }]) => {
      const memory = svg("svg", { viewBox: `0 0 ${T * (CELL + 2)} ${rows * CELL}`, role: "img" });
      const bars = TEXT.map((_, i) => {
        const height = Math.max(0.8, (LINE * work(i + 1)) / most);
        return svg("rect", { x: i * (CELL + 2), y: LINE - height, width: CELL, height });
      });
      const effort = svg(
        "svg",
        {
          viewBox: `0 0 ${T * (CELL + 2)} ${LINE}`,
          role: "img",
          "aria-label": "Work of each tick, one scale for all four",
        },
        svg("path", { class: "machines-frame", d: `M0 ${LINE}H${T * (CELL + 2)}` }),
        bars,
      );
      const size = element("p"), effortLine = element("p", { class: "machines-work" });
      const section = element(
        "section",
        { style: `--machine: var(${color})`, "aria-label": name },
        element("p", { class: "machines-name" }, name),
        memory,
        size,
        effort,
        effortLine,
      );
      section.querySelector(".machines-name").style.color = `var(${color}-text)`;
      return { key, name, work, memory, bars, size, effortLine, section };
    });

    function render(t) {
      text.forEach((letter, i) => {
        letter.classList.toggle("machines-read", i < t);
        letter.classList.toggle("machines-now", i === t - 1);
      });
      for (const { key, work, memory, bars, size, effortLine } of panels) {
        const state = columns[key][t];
        memory.replaceChildren(...Stage.squares(state, shade, { side: CELL, pitch: CELL + 2 }));
        memory.setAttribute("aria-label", `State: ${state.flat().length} numbers`);
        bars.forEach((bar, i) => bar.setAttribute("visibility", i < t ? "visible" : "hidden"));
        size.textContent = `State: ${state.flat().length} numbers`;
        effortLine.textContent = t ? `This tick: ${Elements.grouped(work(t))} operations` : "No tick yet";
      }
    }

    function say(t) {
      if (!t) return "Nothing read yet.";
      const parts = panels.map(({ key, name, work }) =>
        `${name} ${columns[key][t].flat().length} numbers, ${work(t)} operations`
      );
      return `Tick ${t} of ${T}. ${parts.join("; ")}.`;
    }

    const steps = Stage.stepper(stage, { length: () => T, render, say });
    stage.append(
      element("div", { class: "machines-text", "aria-hidden": "true" }, text),
      steps.bar,
      element("div", { class: "machines" }, panels.map(({ section }) => section)),
      steps.line,
    );
    // Far enough for the growing states to show.
    steps.show(10);
    return { step: [Stage.whole(steps.show, steps.step, 0, T), 10] };
  });
}
