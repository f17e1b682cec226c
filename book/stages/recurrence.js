"use strict";

/* One recurrence with three valves: how the state decays, what is written, how it is read. The
   state is the sum of the parts that each letter of a text wrote; the size of a part is how much of
   the letter is left. */

{
  const { element, svg } = Stage;
  const { K, DECAYS, NOTES, PRESETS, RATES, READS, WRITES, convolve, convolves, recur, size, weight } =
    Recurrence;
  const MOST = 24, WIDTH = 360, CELL = 10, BAR = 34;
  /* Whether a valve is set once for all texts, or by each letter. */
  const ANEW = "set by each letter";
  const SETTINGS = {
    decay: {
      none: "open",
      fixed: "fixed",
      channel: "fixed, a channel",
      input: ANEW,
      channels: ANEW,
      step: ANEW,
    },
    write: { alike: "fixed" },
    read: { fixed: "fixed" },
  };
  const FIRST = { text: "a state can forget", preset: "Mamba-2's decay" };
  const VALVES = [DECAYS, WRITES, READS];

  const FORMULAS = {
    decay: {
      none: "",
      fixed: "α ",
      channel: "Diag(α) ",
      input: "αₜ ",
      channels: "Diag(αₜ) ",
      step: "exp(−Δₜ) ",
    },
    write: {
      alike: "b vₜᵀ",
      key: "kₜ vₜᵀ",
      strength: "βₜ kₜ vₜᵀ",
      step: "Δₜ kₜ vₜᵀ",
      channel: "exp(kₜ) ∘ vₜ",
    },
    read: { fixed: "Sₜᵀ c", query: "Sₜᵀ qₜ", mean: "Sₜᵀ qₜ ∕ zₜᵀ qₜ", gate: "σ(qₜ) ∘ Sₜᵀ1 ∕ zₜᵀ1" },
    readChannels: {
      fixed: "c ∘ sₜ",
      query: "qₜ ∘ sₜ",
      mean: "(qₜ ∘ sₜ) ∕ (qₜ ∘ zₜ)",
      gate: "σ(qₜ) ∘ sₜ ∕ zₜ",
    },
  };
  /* The formula, with the valve below each term. */
  function formula({ decay, write, read }) {
    const S = write === "channel" ? "s" : "S", kept = `${FORMULAS.decay[decay]}${S}ₜ₋₁`;
    const written = write === "delta" ? `βₜ kₜ (vₜ − (${kept})ᵀ kₜ)ᵀ` : FORMULAS.write[write];
    const answer = (write === "channel" ? FORMULAS.readChannels : FORMULAS.read)[read];
    const term = (said, valve) =>
      element("span", { class: "recurrence-term" }, said, element("small", {}, valve));
    const side = (...parts) => element("span", { class: "recurrence-side" }, ...parts);
    return [
      side(`${S}ₜ = `, term(kept, "decay"), " + ", term(written, "write")),
      " ",
      side("oₜ = ", term(answer, "read")),
    ];
  }

  /* A valve: a handle along the pipe if it is open and across it if it is shut. */
  const setting = (name, value) => SETTINGS[name][value] ?? ANEW;
  const valve = (x, y, open, name, value, beside = false) => {
    const at = beside ? { x: x + 26 } : { x, "text-anchor": "middle" }, below = beside ? y - 1 : y + 26;
    return svg(
      "g",
      { class: "recurrence-valve", "data-valve": name, "data-open": open.toFixed(2) },
      svg("circle", { cx: x, cy: y, r: 5 }),
      svg("line", {
        x1: -13,
        x2: 13,
        y1: 0,
        y2: 0,
        transform: `translate(${x} ${y}) rotate(${90 * (1 - open)})`,
      }),
      svg("text", { ...at, y: below }, name),
      svg("text", { ...at, y: below + 14, class: "recurrence-setting" }, setting(name, value)),
    );
  };
  const gate = (letter) => 0.25 + 0.75 * Stage.random(977 * letter.codePointAt(0))();

  /* The state after a letter, between its valves. looped: it goes back through the decay. */
  function pipe(letter, parts, { decay, write, read }, looped) {
    const rates = RATES[decay](letter ?? " "),
      wide = write === "channel" ? 1 : K,
      left = 180 - (wide * CELL) / 2,
      top = 34;
    const columns = Array.from(
      { length: wide },
      (_, j) => Array.from({ length: K }, (_, c) => parts.reduce((sum, part) => sum + part[c][j], 0)),
    );
    const scale = Math.max(0.5, ...columns.flat().map(Math.abs)), edge = 180 - K * CELL / 2 - 4;
    const shade = (value) => 0.06 + 0.94 * Math.abs(value) / scale;
    return [
      svg("path", { class: "recurrence-pipe", d: `M14 64H${edge - 2}M${360 - edge + 2} 64H346` }),
      looped
        ? svg("path", { class: "recurrence-pipe", d: `M200 12H160M200 12V${top - 5}M160 12V${top - 5}` })
        : null,
      valve(78, 64, letter ? weight(write, letter) : 1, "write", write),
      valve(280, 64, letter && read === "gate" ? gate(letter) : 1, "read", read),
      looped ? valve(180, 12, rates.reduce((a, b) => a + b, 0) / K, "decay", decay, true) : null,
      svg("rect", {
        class: "recurrence-box",
        x: edge,
        y: top - 4,
        width: 360 - 2 * edge,
        height: K * CELL + 7,
        rx: 3,
      }),
      svg("g", { class: "recurrence-cells" }, Stage.squares(columns, shade, { x: left, y: top, side: CELL })),
    ].filter(Boolean);
  }

  /* left: how much is left of each letter read so far. */
  function letters(text, left) {
    const step = WIDTH / Math.max(text.length, 12), n = left.length;
    return text.flatMap((letter, j) => {
      const kept = j < n ? left[j] : 0, x = (j + 0.5) * step;
      const bar = j < n
        ? svg("rect", {
          class: "recurrence-bar",
          x: x - step / 2 + 1,
          y: BAR * (1 - Math.min(1, kept)),
          width: step - 2,
          height: BAR * Math.min(1, kept),
        })
        : null;
      const shown = svg("text", {
        class: j < n ? "recurrence-letter" : "recurrence-ahead",
        x,
        y: BAR + 20,
        "text-anchor": "middle",
        "fill-opacity": j < n ? (0.55 + 0.45 * Math.min(1, kept)).toFixed(2) : 1,
        "data-kept": j < n ? kept.toFixed(4) : "",
      }, letter === " " ? "␣" : letter);
      return [bar, shown].filter(Boolean);
    });
  }

  /* A text in a layer, and its pictures. */
  class Run {
    text = [...FIRST.text];
    form = "recurrence";
    flow = svg("svg", { class: "recurrence-flow", viewBox: `0 0 ${WIDTH} 112`, role: "img" });
    row = svg("svg", { class: "recurrence-text", viewBox: `0 -2 ${WIDTH} ${BAR + 30}`, role: "img" });
    equation = element("p", { class: "recurrence-formula" });

    constructor() {
      this.set(PRESETS[FIRST.preset]);
    }

    set([decay, write, read]) {
      this.layer = { decay, write, read };
    }

    /* The name of the layer that these valves make. */
    name() {
      return Object.keys(PRESETS).find((name) => PRESETS[name].join() === Object.values(this.layer).join());
    }

    compute() {
      this.states = this.form === "convolution"
        ? convolve(this.text, this.layer)
        : recur(this.text, this.layer);
    }

    /* After n letters, how much is left of each. */
    left(n) {
      return (this.states[n] ?? []).map((part, j) => size(part) / size(this.states[j + 1][j]));
    }

    render(n) {
      const { text, flow, row, equation } = this, kept = this.left(n), sum = kept.reduce((a, b) => a + b, 0);
      flow.replaceChildren(...pipe(text[n - 1], this.states[n], this.layer, this.form === "recurrence"));
      row.replaceChildren(...letters(text, kept));
      flow.setAttribute(
        "aria-label",
        `A state of ${K} by ${K} numbers between valves for writing, decay and reading.`,
      );
      row.setAttribute(
        "aria-label",
        `How much of each letter is left: ${
          text.slice(0, n).map((letter, j) => `${letter} ${Math.round(100 * kept[j])}%`).join(", ")
          || "nothing read yet"
        }.`,
      );
      equation.replaceChildren(...formula(this.layer));
      row.dataset.sum = sum.toFixed(4);
    }

    say(n) {
      if (!n) return "The state is empty.";
      const kept = this.left(n), sum = kept.reduce((a, b) => a + b, 0);
      return `Letter ${n} of ${this.text.length}, “${this.text[n - 1]}”. ${
        Math.round(100 * kept[0])
      }% of the first letter is left. In all, the state holds as much as ${sum.toFixed(1)} letters.`;
    }

    why() {
      const said = convolves(this.layer)
        ? "The decay is the same for every text. What is left of a letter depends on its distance alone: a "
          + "convolution."
        : "The decay depends on the text, so no kernel can be computed beforehand: no convolution.";
      const note = NOTES[this.name()] ?? NOTES[this.layer.write];
      return note ? `${said} ${note}` : said;
    }
  }

  Stage.mount("recurrence", (stage) => {
    const run = new Run(), why = element("p", { class: "stage-note" });
    const steps = Stage.stepper(stage, {
      length: () => run.text.length,
      render: (n) => run.render(n),
      say: (n) => run.say(n),
      milliseconds: 500,
    });

    /* Computes everything again, up to the end of the text or to the reader's step. */
    function update(at = steps.step()) {
      const fixed = convolves(run.layer);
      if (!fixed && run.form === "convolution") Stage.pick(form)("recurrence");
      form.querySelector('input[value="convolution"]').disabled = !fixed;
      why.textContent = run.why();
      presets.querySelector("select").value = run.name() ?? names[0];
      run.compute();
      steps.show(Math.min(at, run.text.length));
    }

    const selects = Object.keys(run.layer).map((valve, j) => {
      const label = valve[0].toUpperCase() + valve.slice(1);
      return Stage.select(`recurrence-${valve}`, label, VALVES[j], run.layer[valve], (chosen) => {
        run.layer[valve] = chosen;
        update();
      });
    });
    const names = ["(of your own)", ...Object.keys(PRESETS)];
    const presets = Stage.select("recurrence-preset", "Layer", names, run.name(), set);
    const [typed, field] = Stage.field("recurrence-input", "Your text", FIRST.text, {
      maxlength: MOST,
      spellcheck: "false",
      oninput: () => {
        run.text = [...typed.value].slice(0, MOST);
        update(run.text.length);
      },
    });
    const form = Stage.radios(
      "Computed as",
      { recurrence: "Recurrence", convolution: "Convolution" },
      run.form,
      (value) => {
        run.form = value;
        update();
      },
    );

    /* Sets a layer by its name, or by its valves: decay+write+read. */
    function set(said) {
      const valves = PRESETS[said] ?? said.split("+");
      if (!VALVES.every((options, j) => options[valves[j]])) return false;
      run.set(valves);
      selects.forEach((one, j) => {
        one.querySelector("select").value = valves[j];
      });
      update();
    }
    stage.append(
      element("div", { class: "stage-row" }, presets, field, form),
      why,
      run.flow,
      element("p", { class: "recurrence-label" }, "Bars: how much of each letter is left in the state"),
      run.row,
      steps.line,
      steps.bar,
      run.equation,
      element("div", { class: "stage-row" }, selects),
    );
    update(run.text.length);
    return {
      layer: [Stage.setter(set, () => run.name() ?? Object.values(run.layer).join("+")), FIRST.preset],
      text: [
        Stage.setter(
          (said) => (typed.value = said, typed.dispatchEvent(new Event("input"))),
          () => typed.value,
        ),
        FIRST.text,
      ],
      form: [Stage.pick(form), "recurrence"],
      step: [
        Stage.whole(steps.show, () => (steps.step() === run.text.length ? MOST : steps.step()), 0, MOST),
        MOST,
      ],
    };
  });
}
