"use strict";

/* One channel of a diagonal state space with two numbers of state, stepped as a recurrence and,
   beside it, as a sum over the past. With a fixed step the weights of the sum are one kernel,
   shifted; with a step from the input every output has weights of its own. */

{
  const { element, svg } = Stage;
  const A = [-0.35, -1.6], C = [0.7, 0.5];
  const SIGNAL = [0.9, 0.1, -0.15, 0.1, 0.05, -0.8, 0.1, -0.1, 0.15, 0.9, -0.1, 0.05], T = SIGNAL.length;
  const WIDTH = 360,
    STEP = 24,
    LEFT = 66,
    ROWS = { signal: 30, weights: 92, states: 150, outputs: 212 },
    HEIGHT = 246,
    TALL = 24;
  const FIXED = 0.5, OPEN = 1.2, SHUT = 0.04;

  const deltas = (kind) => SIGNAL.map((u) => (kind === "fixed" ? FIXED : Math.abs(u) > 0.5 ? OPEN : SHUT));
  /* Zero-order hold: how much of each number a tick of length dt keeps, and how much it adds. */
  const keeps = (dt) => A.map((a) => Math.exp(dt * a));
  const enters = (dt) => A.map((a) => (Math.exp(dt * a) - 1) / a);
  const dot = (x, y) => x.reduce((sum, a, i) => sum + a * y[i], 0);

  function recurrence(kind) {
    let s = A.map(() => 0);
    return deltas(kind).map((dt, i) => (s = s.map((x, n) => keeps(dt)[n] * x + enters(dt)[n] * SIGNAL[i])));
  }
  /* The weight of input j in output i: C, times the decays between, times what is added at j. */
  const weight = (kind, i, j) => {
    const steps = deltas(kind), between = steps.slice(j + 1, i + 1).reduce((sum, dt) => sum + dt, 0);
    return dot(C, A.map((a, n) => Math.exp(between * a) * enters(steps[j])[n]));
  };
  const outputs = (kind) => {
    const states = recurrence(kind);
    return SIGNAL.map((_, i) => ({
      state: dot(C, states[i]),
      sum: SIGNAL.slice(0, i + 1).reduce((sum, u, j) => sum + weight(kind, i, j) * u, 0),
    }));
  };

  const middle = (i) => LEFT + (i + 0.5) * STEP;
  const bar = (i, row, value, css, width = 12, shift = 0) =>
    svg("rect", {
      class: css,
      x: middle(i) - width / 2 + shift,
      y: ROWS[row] - TALL * Math.max(0, value),
      width,
      height: Math.max(0.5, TALL * Math.abs(value)),
      "data-value": value.toFixed(4),
    });
  const base = (row, name, letter) => [
    svg("line", { class: "convolution-base", x1: LEFT, x2: WIDTH - 4, y1: ROWS[row], y2: ROWS[row] }),
    svg("text", { x: 2, y: ROWS[row] + 4 }, name, " ", svg("tspan", { class: "convolution-name" }, letter)),
  ];

  Stage.mount("convolution", (stage) => {
    let kind = "fixed";
    const picture = svg("svg", {
      class: "convolution-picture",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
    });
    const shown = Stage.fact("Output, by the state (bar)"), summed = Stage.fact("Output, by the sum (ring)");

    function render(n) {
      const states = recurrence(kind), found = outputs(kind), now = n - 1;
      picture.replaceChildren(
        ...base("signal", "input", "u"),
        ...(kind === "fixed" ? base("weights", "kernel", "K") : base("weights", "weights", "w")),
        ...base("states", "state", "s"),
        ...base("outputs", "output", "y"),
        ...SIGNAL.map((u, j) =>
          bar(
            j,
            "signal",
            u,
            j === now ? "convolution-now" : j < n ? "convolution-past" : "convolution-ahead",
          )
        ),
        ...SIGNAL.slice(0, n).map((_, j) =>
          bar(
            j,
            "weights",
            2 * weight(kind, now, j),
            kind === "fixed" ? "convolution-kernel" : "convolution-weights",
          )
        ),
        ...states.slice(0, n).flatMap((s, i) =>
          s.map((x, m) =>
            bar(i, "states", 1.5 * x, i === now ? "convolution-now" : "convolution-faded", 6, m ? 4 : -4)
          )
        ),
        ...found.slice(0, n).flatMap(({ state, sum }, i) => [
          bar(i, "outputs", 2 * state, "convolution-output"),
          svg("circle", {
            class: "convolution-ring",
            cx: middle(i),
            cy: ROWS.outputs - TALL * 2 * sum,
            r: 4,
          }),
        ]),
      );
      picture.setAttribute(
        "aria-label",
        n
          ? `Input, weights of the past for output ${n}, state and outputs after ${n} of ${T} ticks.`
          : `A signal of ${T} numbers, not read yet.`,
      );
      shown.value.textContent = n ? found[now].state.toFixed(4).replace("-", "−") : "–";
      summed.value.textContent = n ? found[now].sum.toFixed(4).replace("-", "−") : "–";
    }

    function say(n) {
      if (!n) return "Nothing read yet; the state is zero.";
      const s = recurrence(kind)[n - 1].map((x) => x.toFixed(2).replace("-", "−")).join(", ");
      const terms = n === 1 ? "one product" : `${n} products`;
      const weights = kind === "fixed"
        ? "with the kernel, shifted by one"
        : "with weights that no other output has";
      return `Tick ${n} of ${T}: the state is (${s}). The sum takes ${terms}, ${weights}.`;
    }

    const steps = Stage.stepper(stage, { length: () => T, render, say, milliseconds: 700 });
    const chooser = Stage.radios(
      "Step Δ",
      { fixed: "fixed", selective: "chosen by the input" },
      kind,
      (value) => {
        kind = value;
        steps.show(steps.step());
      },
    );
    stage.append(
      element("div", { class: "stage-row" }, chooser, steps.bar),
      element(
        "div",
        { class: "convolution" },
        picture,
        element("div", { class: "stage-counts" }, shown.group, summed.group),
      ),
      steps.line,
    );
    steps.show(10);
    return { delta: [Stage.pick(chooser), "fixed"], step: [Stage.whole(steps.show, steps.step, 0, T), 10] };
  });
}
