"use strict";

/* The commuting diagram. Every arrow runs on one small model: Laplace's rule over {a, b}, which
   expects a letter as often as it has been seen, plus one. All calls are really made and counted. */

Stage.mount("diagram", (stage, part) => {
  const { element } = Stage;
  const START = "⊥";
  let x = "abba", calls, trace;

  /* The same model as a machine, a causal transformation and a function of a prefix. */
  const machine = { first: [0, 0], tick: ([a, b], letter) => {
    calls.r += 1;
    const state = [a + (letter === "a"), b + (letter === "b")];
    return [state, [(state[0] + 1) / (state[0] + state[1] + 2), (state[1] + 1) / (state[0] + state[1] + 2)]];
  } };
  const unroll = ({ first, tick }) => (text) => {
    let state = first;
    return [...text].map((letter) => {
      let y;
      [state, y] = tick(state, letter);
      trace.push(`${letter}: state (${state}), output ${show(y)}`);
      return y;
    });
  };
  const h = (text) => {
    calls.h += 1;
    let seen = [0, 0];
    return [...text].map((letter) => {
      seen = [seen[0] + (letter === "a"), seen[1] + (letter === "b")];
      return [(seen[0] + 1) / (seen[0] + seen[1] + 2), (seen[1] + 1) / (seen[0] + seen[1] + 2)];
    });
  };
  const g = (prefix) => {
    calls.g += 1;
    const n = [...prefix].filter((letter) => letter !== START).length, b = [...prefix].filter((letter) => letter === "b").length;
    return [(n - b + 1) / (n + 2), (b + 1) / (n + 2)];
  };

  const show = ([a, b]) => `(a ${a.toFixed(2)}, b ${b.toFixed(2)})`;
  const places = {
    SM: ["SM", "machines"],
    CSeqT: ["CSeqT", "whole texts"],
    Fn: ["Fn", "a prefix"],
    Dist: [["Dist Seq", element("sub", {}, "t")], "probabilities"],
  };
  const arrows = {
    U: { from: "SM", to: "CSeqT", sign: ["U →"], word: "unroll", cost: "t+1 ticks", run() {
      unroll(machine)(START + x);
      return [`Unroll the machine over ${START}${x}.`, ...trace];
    } },
    L: { from: "CSeqT", to: "Fn", sign: ["L", element("sub", {}, "⊥"), " →"], word: "take last", cost: "1 call", run() {
      const y = h(START + x);
      return [`h(${START}${x}) =`, ...y.map((one) => `  ${show(one)}`), `Keep the last: g(${x}) = ${show(y.at(-1))}`];
    } },
    inverse: { from: "Fn", to: "CSeqT", sign: ["← L", element("sup", {}, "−1")], word: "all prefixes", cost: "t+1 calls", dear: true, run() {
      const text = START + x;
      return [...text].map((_, i) => `g(${text.slice(1, i + 1) || "[ ]"}) = ${show(g(text.slice(0, i + 1)))}`);
    } },
    A: { from: "Fn", to: "Dist", sign: ["A", element("sub", {}, "t"), " →"], word: "multiply", cost: "1 call of h", run() {
      const y = h(START + x.slice(0, -1));
      const factors = [...x].map((letter, i) => y[i][letter === "b" ? 1 : 0]);
      return [`One call, h(${START}${x.slice(0, -1)}), gives every factor.`,
        `f(${x}) = ${factors.map((p) => p.toFixed(2)).join(" · ")} = ${factors.reduce((a, b) => a * b, 1).toFixed(4)}`];
    } },
    P: { from: "Fn", to: "SM", sign: ["← P"], word: "tape, from a prefix all the way back", cost: "t+1 calls", dear: true, run() {
      let tape = "";
      return [...(START + x)].map((letter) => {
        tape += letter;
        return `${letter}: state "${tape}", output ${show(g(tape))}`;
      });
    } },
    PLU: { from: "SM", to: "SM", sign: ["P ∘ L", element("sub", {}, "⊥"), " ∘ U"], word: "once around", cost: "1 + 2 + … ticks", dear: true, run() {
      let tape = "";
      const lines = [...(START + x)].map((letter) => {
        tape += letter;
        const y = unroll(machine)(tape).at(-1);
        return `${letter}: state "${tape}", output ${show(y)}, ticks so far ${calls.r}`;
      });
      return ["The same outputs as the machine itself, from another machine:", ...lines];
    } },
  };
  const order = part === "machines" ? ["SM", "CSeqT", "Fn", "Dist"] : ["CSeqT", "Fn", "Dist"];
  const shown = part === "machines" ? ["U", "L", "inverse", "A", "P", "PLU"] : ["L", "inverse", "A"];

  let chosen = part === "machines" ? "PLU" : "inverse";
  const boxes = Object.fromEntries(order.map((name) => {
    const [title, note] = places[name];
    return [name, element("div", { class: "diagram-place" }, element("b", {}, title), element("small", {}, note))];
  }));
  const buttons = Object.fromEntries(shown.map((name) => {
    const { sign, word, cost, dear } = arrows[name];
    return [name, element("button", { type: "button", class: `diagram-arrow${dear ? " diagram-dear" : ""}`, onclick: () => run(name) },
      element("b", {}, sign), element("small", {}, word), element("small", {}, cost))];
  }));
  const between = (left, right) => element("div", { class: "diagram-arrows" },
    shown.filter((name) => {
      const ends = [arrows[name].from, arrows[name].to];
      return ends.includes(left) && ends.includes(right) && left !== right;
    }).map((name) => buttons[name]));
  const row = element("div", { class: "diagram" },
    order.flatMap((name, i) => (i ? [between(order[i - 1], name), boxes[name]] : [boxes[name]])));
  const long = part === "machines" ? element("div", { class: "stage-row" }, buttons.P, buttons.PLU) : null;
  const result = element("pre", { class: "diagram-run", role: "status" });

  function run(name) {
    chosen = name;
    calls = { r: 0, h: 0, g: 0 };
    trace = [];
    const lines = arrows[name].run();
    const used = [["ticks of the machine", calls.r], ["calls of h", calls.h], ["calls of g", calls.g]].filter(([, n]) => n);
    result.textContent = [...lines, `Counted: ${used.map(([what, n]) => `${what} ${n}`).join(", ")}.`].join("\n");
    for (const key of shown) buttons[key].setAttribute("aria-pressed", key === name);
    for (const key of order) boxes[key].classList.toggle("diagram-on", [arrows[name].from, arrows[name].to].includes(key));
  }

  const move = (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by || !event.target.closest(".diagram-arrow") || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const name = shown[(shown.indexOf(chosen) + by + shown.length) % shown.length];
    run(name);
    buttons[name].focus();
  };
  stage.addEventListener("keydown", move);
  const texts = ["ab", "abba", "bbbbbbbb", "abababababab"];
  const text = Stage.radios("Text", Object.fromEntries(texts.map((each) => [each, each])), x, (each) => {
    x = each;
    run(chosen);
  });
  stage.append(
    element("div", { class: "stage-row" }, text),
    row, long ?? "", result);
  run(chosen);
  return { text: [Stage.pick(text), "abba"], run: [Stage.setter((name) => (shown.includes(name) ? run(name) : false), () => chosen), chosen] };
});
