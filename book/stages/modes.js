"use strict";

/* The triangle of products, filled in three modes side by side at the speeds of stored runs. Filled
   products are computed, and a striped area is reached through a state. Times are those of forward
   passes in #devices-data; costs are for one head of that run's width. */

{
  const { element, svg } = Stage, { grouped: text } = Elements;
  const MODES = { attention: "Attention mode", recurrent: "Recurrent mode", chunked: "Chunked mode" };
  const CHUNKS = 16, STEPS = 60, MILLISECONDS = 100; // the number of chunks drawn, for every length
  const FIRST = 16384;
  const TRIANGLE = "M2 1V9H20Z";
  const LEGEND = {
    "A row: one token, compared with itself and all before it": [TRIANGLE, "lines-line lines-thin"],
    "computed pair by pair": [TRIANGLE, "modes-product"],
    "read from the state": ["M1 7L8 1M4 9L13 1M9 9L18 1M14 9L21 3", "lines-line lines-thin"],
  };

  /* {length: {mode: seconds}} of the lengths at which every mode was measured. */
  function storedTimes({ points, width }) {
    const found = {};
    for (const [mode, t, seconds, heads] of points) {
      if (mode in MODES && heads === 1 && width) (found[t] ??= {})[mode] = seconds;
    }
    const all = ([, times]) => Object.keys(MODES).every((mode) => times[mode]);
    return Object.fromEntries(Object.entries(found).filter(all));
  }

  /* The share of the rows that are done after a share of the time. In attention mode the work of a
     row grows with its place; in the others every row takes the same. */
  const rowsDone = (mode, share) => (mode === "attention" ? Math.sqrt(share) : share);

  /* [filled, striped]: paths in a square of CHUNKS units, of the rows above `rows`. */
  function shapes(mode, rows) {
    const triangle = `M0 0V${rows}H${rows}Z`;
    if (mode === "attention") return [triangle, ""];
    if (mode === "recurrent") return ["", triangle];
    const whole = Array.from({ length: Math.floor(rows) }, (_, i) => i);
    return [
      whole.map((i) => `M${i} ${i}V${i + 1}H${i + 1}Z`).join(""),
      whole.map((i) => `M0 ${i}H${i}V${i + 1}H0Z`).join(""),
    ];
  }

  /* One mode: its triangle, the elapsed part of its time, and its costs. */
  function panel(mode) {
    const parts = ["modes-open", "modes-state", "modes-product"].map((css) => svg("path", { class: css }));
    const stripes = `modes-stripes-${mode}`;
    parts[0].setAttribute("d", `M0 0V${CHUNKS}H${CHUNKS}Z`);
    parts[1].setAttribute("fill", `url(#${stripes})`);
    const pattern = svg(
      "pattern",
      {
        id: stripes,
        width: 0.5,
        height: 0.5,
        patternUnits: "userSpaceOnUse",
        patternTransform: "rotate(45)",
      },
      svg("rect", { class: "modes-product", width: 0.18, height: 0.5 }),
    );
    const picture = svg(
      "svg",
      { viewBox: `0 0 ${CHUNKS} ${CHUNKS}`, "aria-hidden": "true" },
      pattern,
      ...parts,
    );
    const [done, took, flops, bytes, steps] = Array.from({ length: 5 }, (_, i) => element(i ? "span" : "b"));
    const bar = element("span", { class: "sampler-bar" });
    const node = element(
      "section",
      {
        "aria-label": MODES[mode],
        "data-mode": mode,
        style: `--mode: var(--${mode}); --mode-text: var(--${mode}-text)`,
      },
      element("p", { class: "roofline-name" }, MODES[mode]),
      picture,
      element("p", { class: "modes-costs" }, bar, done, took),
      element("p", { class: "roofline-quiet modes-costs" }, flops, bytes, steps),
    );

    function render(cost, seconds, share) {
      shapes(mode, rowsDone(mode, share) * CHUNKS).forEach((d, i) => parts[2 - i].setAttribute("d", d));
      bar.style.setProperty("--share", share);
      done.textContent = share === 1 ? "done" : `${Costs.text.digits(100 * share, 2)}% done`;
      took.textContent = `${share === 1 ? "in" : "of"} ${Costs.text.seconds(seconds)}`;
      flops.textContent = Costs.text.flops(cost.flops);
      bytes.textContent = Costs.text.bytes(cost.bytes);
      steps.textContent = cost.steps === 1 ? "1 step" : `${text(cost.steps)} steps`;
      for (const key of ["flops", "bytes", "steps"]) node.dataset[key] = cost[key];
      node.dataset.seconds = seconds;
    }

    return { node, render };
  }

  Stage.mount("modes", (stage) => {
    const device = Costs.devices().find((one) => Object.keys(storedTimes(one)).length);
    if (!device) {
      stage.append(element("p", {}, "Not measured yet."));
      return {};
    }
    const machine = device.name.replace(" (measured here)", "");
    const stored = storedTimes(device), lengths = Object.keys(stored).map(Number);
    const panels = Object.fromEntries(Object.keys(MODES).map((mode) => [mode, panel(mode)]));
    const clock = element("b");
    const names = element(
      "ul",
      { class: "lines-names" },
      Object.entries(LEGEND).map(([words, [d, css]]) => Stage.named(words, [svg("path", { class: css, d })])),
    );
    let t = lengths.includes(FIRST) ? FIRST : lengths.at(-1);
    const slowest = () => Math.max(...Object.values(stored[t]));
    const quickest = () => Math.min(...Object.values(stored[t]));
    /* The step at which the first is done, which shows most. */
    const firstDone = () => Math.ceil(STEPS * quickest() / slowest() - 1e-9);
    /* Seconds at a step: equal parts of the time, except at the step where the first is done. */
    const seconds = (n) => (n === firstDone() ? quickest() : (n / STEPS) * slowest());
    const shareOf = (mode, n) => Math.min(1, seconds(n) / stored[t][mode]);

    function render(n) {
      clock.textContent = Costs.text.seconds(seconds(n));
      for (const [mode, { render }] of Object.entries(panels)) {
        const cost = Costs.mode(mode, { t, d: device.width, c: 64, item: device.item });
        render(cost, stored[t][mode], shareOf(mode, n));
      }
    }

    function say(n) {
      const slower = (STEPS * MILLISECONDS / 1000) / slowest();
      const [factor, way] = slower > 1 ? [slower, "slower"] : [1 / slower, "faster"];
      const pace = Stage.calm
        ? ""
        : `Play shows all three ${Costs.text.digits(factor, 1)} times ${way} than they ran on ${machine}.`;
      if (n === 0) return `Nothing is computed yet. ${pace}`;
      const done = Object.keys(MODES).filter((mode) => shareOf(mode, n) === 1).map((mode) =>
        MODES[mode].toLowerCase()
      );
      const who = done.length === 3
        ? "all three modes are"
        : done.length === 2
        ? `${done.join(" and ")} are`
        : done.length
        ? `only ${done[0]} is`
        : "no mode is";
      return `After ${Costs.text.seconds(seconds(n))} ${who} done. ${pace}`;
    }

    const steps = Stage.stepper(stage, { length: () => STEPS, render, say, milliseconds: MILLISECONDS });
    function setLength(value) {
      t = value;
      steps.show(firstDone());
    }
    const slider = Stage.slider("modes-t", "Tokens", lengths, t, (value) => {
      setLength(value);
      Costs.length.tell(value, follow);
    });
    function follow(value) {
      if (value === t || !lengths.includes(value)) return;
      slider.put(lengths.indexOf(value));
      setLength(value);
    }
    Costs.length.listen(follow);
    stage.append(
      element("p", { class: "modes-clock" }, "Clock: ", clock),
      element("div", { class: "modes" }, Object.values(panels).map(({ node }) => node)),
      element("div", { class: "stage-row" }, slider, steps.bar),
      steps.line,
      names,
    );
    const numbered = Stage.whole(steps.show, steps.step, 0, STEPS);
    const showStep = (value) => (value === "first" ? steps.show(firstDone()) : numbered(value));
    const first = t;
    setLength(first);
    return {
      t: [Stage.slide(slider, lengths), first],
      step: [
        Stage.setter(showStep, () => (steps.step() === firstDone() ? "first" : String(steps.step()))),
        "first",
      ],
    };
  });
}
