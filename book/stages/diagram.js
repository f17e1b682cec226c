"use strict";

/* The commuting diagram. Every arrow runs on one small model: Laplace's rule over {a, b}, which
   counts each letter one more often than it was read. All calls are made, and counted. */

{
  const { element } = Stage;
  const START = "⊥", FIRST = "abba", TEXTS = ["ab", FIRST, "bbbbbbbb", "abababababab"];
  const to = (arrow) => element("span", { class: "diagram-turn" }, arrow); // downwards on a phone
  const show = ([a, b]) => `(a ${a.toFixed(2)}, b ${b.toFixed(2)})`;
  const expected = ([a, b]) => [(a + 1) / (a + b + 2), (b + 1) / (a + b + 2)];
  const next = ([a, b], letter) => [a + (letter === "a"), b + (letter === "b")];

  /* The same model as a machine, a causal transformation and a function of a prefix. */
  class Model {
    begin() {
      this.calls = { r: 0, h: 0, g: 0 };
      this.trace = [];
    }

    unroll(text) {
      let state = [0, 0];
      return [...text].map((letter) => {
        this.calls.r += 1;
        state = next(state, letter);
        this.trace.push(`${letter}: state (${state}), output ${show(expected(state))}`);
        return expected(state);
      });
    }

    h(text) {
      this.calls.h += 1;
      let seen = [0, 0];
      return [...text].map((letter) => expected(seen = next(seen, letter)));
    }

    g(prefix) {
      this.calls.g += 1;
      return expected([...prefix].reduce(next, [0, 0]));
    }
  }

  const places = () => ({
    SM: ["machines", "SM"],
    CSeqT: ["whole texts", "CSeqT"],
    Fn: ["a prefix", "Fn"],
    Dist: ["probabilities", ["Dist Seq", element("sub", {}, "t")]],
  });
  /* run(x): what an arrow does with the text x, line by line. */
  const arrows = (model) => ({
    U: {
      from: "SM",
      to: "CSeqT",
      sign: ["U ", to("→")],
      word: "unroll",
      cost: "t+1 ticks",
      run(x) {
        model.unroll(START + x);
        return model.trace;
      },
    },
    L: {
      from: "CSeqT",
      to: "Fn",
      sign: ["L", element("sub", {}, "⊥"), " ", to("→")],
      word: "take last",
      cost: "1 call of h",
      run(x) {
        const y = model.h(START + x);
        return [
          `h(${START}${x}) =`,
          ...y.map((one) => `  ${show(one)}`),
          `Keep the last: g(${x}) = ${show(y.at(-1))}`,
        ];
      },
    },
    inverse: {
      from: "Fn",
      to: "CSeqT",
      sign: [to("←"), " L", element("sup", {}, "−1")],
      word: "all prefixes",
      cost: "t+1 calls of g",
      dear: true,
      run(x) {
        const text = START + x;
        return [...text].map((_, i) =>
          `g(${text.slice(1, i + 1) || "[ ]"}) = ${show(model.g(text.slice(0, i + 1)))}`
        );
      },
    },
    A: {
      from: "Fn",
      to: "Dist",
      sign: ["A", element("sub", {}, "t"), " ", to("→")],
      word: "multiply",
      cost: "1 call of h",
      run(x) {
        const y = model.h(START + x.slice(0, -1));
        const factors = [...x].map((letter, i) => y[i][letter === "b" ? 1 : 0]);
        return [
          `One call, h(${START}${x.slice(0, -1)}), gives every factor.`,
          `f(${x}) = ${factors.map((p) => p.toFixed(2)).join(" · ")} = ${
            factors.reduce((a, b) => a * b, 1).toFixed(4)
          }`,
        ];
      },
    },
    P: {
      from: "Fn",
      to: "SM",
      sign: [to("←"), " P"],
      word: "tape, from a prefix all the way back",
      cost: "t+1 calls of g",
      dear: true,
      run(x) {
        let tape = "";
        return [...(START + x)].map((letter) => {
          tape += letter;
          return `${letter}: state "${tape}", output ${show(model.g(tape))}`;
        });
      },
    },
    PLU: {
      from: "SM",
      to: "SM",
      sign: ["P ∘ L ∘ U"],
      word: "once around",
      cost: "1 + 2 + … ticks",
      dear: true,
      run(x) {
        let tape = "";
        const lines = [...(START + x)].map((letter) => {
          tape += letter;
          const y = model.unroll(tape).at(-1);
          return `${letter}: state "${tape}", output ${show(y)}, ticks so far ${model.calls.r}`;
        });
        return ["The same outputs as the machine itself, from another machine:", ...lines];
      },
    },
  });

  Stage.mount("diagram", (stage, part) => {
    const machines = part === "machines", model = new Model(), every = arrows(model);
    const order = machines ? ["SM", "CSeqT", "Fn", "Dist"] : ["CSeqT", "Fn", "Dist"];
    const shown = machines ? ["U", "L", "inverse", "A", "P", "PLU"] : ["L", "inverse", "A"];
    const first = machines ? "PLU" : "inverse";
    let x = FIRST, chosen = first;

    const boxes = Stage.mapped(
      places(),
      ([title, note]) =>
        element("div", { class: "diagram-place" }, element("b", {}, title), element("small", {}, note)),
    );
    const buttons = Object.fromEntries(shown.map((name) => {
      const { sign, word, cost, dear } = every[name];
      return [
        name,
        element(
          "button",
          {
            type: "button",
            class: `diagram-arrow${dear ? " diagram-dear" : ""}`,
            onclick: () => run(name),
          },
          element("b", {}, sign),
          element("small", {}, word),
          element("small", {}, cost),
        ),
      ];
    }));
    const ends = (name) => [every[name].from, every[name].to];
    const between = (left, right) =>
      element(
        "div",
        { class: "diagram-arrows" },
        shown.filter((name) => left !== right && ends(name).includes(left) && ends(name).includes(right)).map(
          (name) => buttons[name],
        ),
      );
    const row = element(
      "div",
      { class: "diagram" },
      order.flatMap((name, i) => (i ? [between(order[i - 1], name), boxes[name]] : [boxes[name]])),
    );
    const long = machines ? element("div", { class: "stage-row" }, buttons.P, buttons.PLU) : "";
    const result = element("pre", { class: "diagram-run", role: "status" });

    function run(name) {
      chosen = name;
      model.begin();
      const lines = every[name].run(x), { calls } = model;
      const used = [["ticks of the machine", calls.r], ["calls of h", calls.h], ["calls of g", calls.g]]
        .filter(([, n]) => n);
      result.textContent = [
        `${every[name].word}, with ${x}:`,
        ...lines,
        `Counted: ${used.map(([what, n]) => `${what} ${n}`).join(", ")}.`,
      ].join("\n");
      for (const key of shown) buttons[key].setAttribute("aria-pressed", key === name);
      for (const key of order) boxes[key].classList.toggle("diagram-on", ends(name).includes(key));
    }

    stage.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!by || !event.target.closest(".diagram-arrow") || event.altKey || event.ctrlKey || event.metaKey) {
        return;
      }
      event.preventDefault();
      const name = shown[(shown.indexOf(chosen) + by + shown.length) % shown.length];
      run(name);
      buttons[name].focus();
    });
    const text = Stage.radios("Text", TEXTS, x, (each) => {
      x = each;
      run(chosen);
    });
    stage.append(element("div", { class: "stage-row" }, text), row, long, result);
    run(chosen);
    return {
      text: [Stage.pick(text), FIRST],
      run: [Stage.setter((name) => (shown.includes(name) ? run(name) : false), () => chosen), first],
    };
  });
}
