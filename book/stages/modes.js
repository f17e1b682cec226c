"use strict";

/* The T x T grid of positions, computed in three modes. A square is a product of a query and a
   key that is really formed; a striped area is reached through a state instead. Costs are for
   one head and 16-bit numbers. */

{
  const { element, svg } = Stage;
  const CELL = 12, GAP = 1.5, MOST = 24;
  const MODES = { attention: "Attention", recurrent: "Recurrent", chunked: "Chunked" };
  // The drawing must fit the screen. These are sizes of a real layer, which also has many more
  // tokens than features.
  const REAL = { t: 8192, d: 64, c: 64 };
  const FIRST = { t: 24, d: 4, c: 6 };
  const whole = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
  const LISTS = { t: whole(2, MOST), d: [2, 4, 8, 16, 32, 64], c: whole(1, MOST) };

  /* How many steps a mode takes. */
  const stepsOf = (mode, { t, c }) => ({ attention: 1, recurrent: t, chunked: Math.ceil(t / c) })[mode];

  /* The rows done at step n, from and to, and from which column on products are formed. */
  const rows = (mode, { t, c }, n) =>
    ({
      attention: [0, t, 0],
      recurrent: [n - 1, n, n],
      chunked: [(n - 1) * c, Math.min(n * c, t), (n - 1) * c],
    })[mode];

  const number = (value) => value.toLocaleString("en");
  const square = (i, j, css) =>
    svg("rect", { class: css, x: j * CELL, y: i * CELL, width: CELL - GAP, height: CELL - GAP });
  const area = (from, to, columns, css) =>
    svg("rect", {
      class: css,
      x: 0,
      y: from * CELL,
      width: columns * CELL - GAP,
      height: (to - from) * CELL - GAP,
    });
  const short = (value) => {
    const power = [[1e9, " G"], [1e6, " M"], [1e3, " k"]].find(([size]) => value >= size) ?? [1, ""];
    return Number((value / power[0]).toPrecision(3)).toLocaleString("en") + power[1];
  };
  const line = (tag, first, cells) =>
    element(
      "tr",
      {},
      element("th", { scope: tag === "th" ? "col" : "row" }, first),
      cells.map((cell) => element(tag, tag === "th" ? { scope: "col" } : {}, cell)),
    );

  /* A real layer: its table, and the row of each mode in it. */
  function realCosts() {
    const realRows = Object.fromEntries(
      Object.entries(MODES).map(([key, name]) => {
        const { flops, bytes, steps } = Costs.mode(key, REAL);
        return [key, line("td", name, [short(flops), short(bytes), number(steps)])];
      }),
    );
    const table = element(
      "table",
      { class: "modes-real" },
      element("caption", {}, `With ${number(REAL.t)} tokens, head width ${REAL.d} and chunks of ${REAL.c}:`),
      element("thead", {}, line("th", "Mode", ["FLOPs", "Bytes, at least", "Steps in a row"])),
      element("tbody", {}, Object.values(realRows)),
    );
    return { table, realRows };
  }

  function say(mode, sizes, n) {
    if (n === 0) return "Nothing computed yet. Each empty square is a query meeting a key of its past.";
    if (mode === "attention") return "One step: every query meets every key of its past, all at once.";
    const [from, to] = rows(mode, sizes, n);
    const step = `Step ${n} of ${stepsOf(mode, sizes)}`;
    if (mode === "recurrent") {
      return `${step}: token ${n} enters the state, and its query reads the state. `
        + "No products of two positions are formed.";
    }
    const inside = to - from === 1 ? "token" : "tokens";
    const past = from
      ? ` Everything before is read through the state after ${from} tokens.`
      : " There is no past yet.";
    return `${step}: ${inside} ${from + 1}${to - from > 1 ? ` to ${to}` : ""} meet each other.${past}`;
  }

  Stage.mount("modes", (stage) => {
    const sizes = { ...FIRST }, { table, realRows } = realCosts();
    let mode = "chunked";
    const last = () => stepsOf(mode, sizes);

    const stripes = svg("pattern", {
      id: "modes-stripes",
      width: 4,
      height: 4,
      patternUnits: "userSpaceOnUse",
      patternTransform: "rotate(45)",
    }, svg("rect", { width: 1.4, height: 4 }));
    const grid = svg("g");
    const picture = svg(
      "svg",
      {
        class: "modes-grid",
        role: "img",
        "aria-label": "Grid of queries, downwards, and keys, to the right",
      },
      svg("defs", {}, stripes),
      grid,
    );
    const values = Object.fromEntries(
      ["flops", "bytes", "steps", "products", "states"].map((key) => [key, element("b")]),
    );
    const counts = element(
      "div",
      { class: "stage-counts" },
      Object.entries({
        flops: "FLOPs",
        bytes: "Bytes moved, at least",
        steps: "Steps in a row",
        products: "Products formed so far",
        states: "States so far",
      }).map(([key, name]) => element("p", {}, element("span", {}, name), values[key])),
    );

    function render(n) {
      const { t } = sizes, nodes = [];
      let products = 0;
      picture.setAttribute("viewBox", `0 0 ${t * CELL} ${t * CELL}`);
      stage.style.setProperty("--mode", `var(--${mode})`);
      for (let i = 0; i < t; i++) for (let j = 0; j <= i; j++) nodes.push(square(i, j, "modes-open"));
      for (let step = 1; step <= n; step++) {
        const [from, to, column] = rows(mode, sizes, step), now = step === n ? " modes-now" : "";
        if (column > 0) nodes.push(area(from, to, Math.min(column, to), `modes-state${now}`));
        for (let i = from; i < to; i++) {
          for (let j = column; j <= i; j++, products++) nodes.push(square(i, j, `modes-product${now}`));
        }
      }
      grid.replaceChildren(...nodes);
      for (const [key, row] of Object.entries(realRows)) row.classList.toggle("modes-chosen", key === mode);
      const { flops, bytes, steps } = Costs.mode(mode, sizes);
      const states = mode === "attention" ? 0 : n;
      for (const [key, value] of Object.entries({ flops, bytes, steps, products, states })) {
        values[key].textContent = number(value);
      }
    }

    const steps = Stage.stepper({ length: last, render, say: (n) => say(mode, sizes, n), milliseconds: 450 });

    const slider = (key, label) =>
      Stage.slider(`modes-${key}`, label, LISTS[key], sizes[key], (value) => {
        sizes[key] = value;
        steps.show(Math.min(steps.step(), last()) || last());
      });
    const chooser = Stage.radios("Mode", MODES, mode, (chosen) => {
      mode = chosen;
      steps.show(last());
    });
    const sliders = { t: slider("t", "Tokens t"), d: slider("d", "Head width d"), c: slider("c", "Chunk c") };
    stage.append(
      element("div", { class: "stage-row" }, chooser, Object.values(sliders)),
      element("div", { class: "modes" }, picture, counts),
      steps.line,
      steps.bar,
      table,
    );
    Stage.keys(stage, steps, last);
    steps.show(2);
    return {
      mode: [Stage.pick(chooser), "chunked"],
      ...Object.fromEntries(
        Object.entries(FIRST).map(([key, n]) => [key, [Stage.slide(sliders[key], LISTS[key]), n]]),
      ),
      step: [Stage.whole(steps.show, steps.step, 0, MOST), MOST],
    };
  });
}
