"use strict";

/* The tree of all texts of three tokens, and two ways to sample one of them. The model is the
   chapter's: the next token depends on the last, and c never follows a. */

{
  const { element, svg } = Stage;
  const LETTERS = ["a", "b", "c"], DEPTH = 3, WIDTH = 351, GAP = 13, TOP = 12, STEP = 38;
  const ROWS = { "": [0.6, 0.3, 0.1], a: [0.5, 0.5, 0], b: [0.1, 0.3, 0.6], c: [0.2, 0.2, 0.6] };
  const g = (prefix) => ROWS[prefix.at(-1) ?? ""];
  const probability = (text) =>
    [...text].reduce((product, letter, i) => product * g(text.slice(0, i))[LETTERS.indexOf(letter)], 1);

  const levels = [[""]];
  for (let i = 0; i < DEPTH; i++) {
    levels.push(levels[i].flatMap((text) => LETTERS.map((letter) => text + letter)));
  }
  const leaves = levels[DEPTH], masses = leaves.map(probability);

  const place = new Map();
  leaves.forEach((text, i) => place.set(text, [GAP * i + GAP / 2, TOP + DEPTH * STEP]));
  for (let i = DEPTH - 1; i >= 0; i--) {
    for (const text of levels[i]) place.set(text, [place.get(text + "b")[0], TOP + i * STEP]);
  }

  /* The tree, and a line below it with the shares of its leaves. */
  function drawTree() {
    const edges = new Map(), nodes = new Map(), bars = [];
    const picture = svg("svg", {
      class: "tree",
      viewBox: `0 0 ${WIDTH} 178`,
      role: "img",
      "aria-label": "A tree with 27 leaves, one for each text",
    });
    for (const text of levels.flat()) {
      if (!text) continue;
      const [x, y] = place.get(text), [px, py] = place.get(text.slice(0, -1));
      edges.set(text, svg("path", { d: `M${px} ${py}L${x} ${y}` }));
      picture.append(edges.get(text));
    }
    for (const text of levels.flat()) {
      const [x, y] = place.get(text);
      const leaf = text.length === DEPTH;
      const group = svg("g", {}, svg("circle", { cx: x, cy: y, r: leaf ? 3.2 : 6.5 }));
      // A leaf's letter is below it, an inner node's inside.
      if (text) {
        group.append(
          svg("text", { x, y: y + (leaf ? 13 : 3), "text-anchor": "middle", "font-size": 9 }, text.at(-1)),
        );
      }
      nodes.set(text, group);
      picture.append(group);
    }
    let left = 0;
    masses.forEach((mass) => {
      bars.push(svg("rect", { x: left * WIDTH, y: 150, width: mass * WIDTH, height: 12 }));
      left += mass;
    });
    const mark = svg("path", { class: "tree-draw" }),
      name = svg("text", { "font-size": 9, y: 176, "text-anchor": "middle" });
    picture.append(...bars, mark, name);
    return { picture, edges, nodes, bars, mark, name };
  }

  /* Steps of both ways of sampling, with the random numbers of this seed. */
  function plan(seed) {
    const next = Stage.random(seed * 7919);
    const draws = [next(), next(), next()];
    let sum = 0, stop = 0;
    while (stop < leaves.length - 1 && sum + masses[stop] <= draws[0]) sum += masses[stop++];
    let text = "";
    const choices = draws.map((u) => {
      const p = g(text);
      let i = 0, total = p[0];
      while (total <= u) total += p[++i];
      text += LETTERS[i];
      return { u, p, letter: LETTERS[i], text };
    });
    return { draws, dumb: stop + 1, quick: choices };
  }

  /* The picture at a step in words. */
  function say(way, { draws, dumb, quick }, n) {
    if (way === "dumb") {
      if (!n) return `A number u = ${draws[0].toFixed(2)} is drawn. The leaves are visited in order.`;
      const sum = masses.slice(0, n).reduce((a, b) => a + b, 0);
      const verdict = n === dumb ? "above u: this is the text." : "not above u yet.";
      return `Leaf ${n}, ${leaves[n - 1]}, has probability ${masses[n - 1].toFixed(3)}. The sum is ${
        sum.toFixed(3)
      }, ${verdict}`;
    }
    if (!n) return "Start at the root, with the empty sequence.";
    const { u, p, letter, text } = quick[n - 1];
    const after = n > 1 ? `After ${text.slice(0, -1)}` : "At the start";
    const shares = LETTERS.map((one, i) => `${one} ${p[i]}`).join(", ");
    return `${after}, g gives ${shares}. The draw ${u.toFixed(2)} picks ${letter}.${
      n === DEPTH ? ` The text is ${text}.` : ""
    }`;
  }

  Stage.mount("tree", (stage) => {
    const { picture, edges, nodes, bars, mark, name } = drawTree();
    const evaluations = Stage.fact("Calls of the model g"), other = Stage.fact("The other way, this time");
    let way = "dumb", seed = 1, planned = plan(seed);

    const length = () => (way === "dumb" ? planned.dumb : DEPTH);

    function render(n) {
      const [u] = planned.draws;
      const current = way === "dumb" ? (n ? leaves[n - 1] : "") : n ? planned.quick[n - 1].text : "";
      const isPath = (text) => n > 0 && current.startsWith(text);
      const isSeen = (text) => way === "dumb" && leaves.slice(0, n).some((leaf) => leaf.startsWith(text));
      const mode = (text) => (isPath(text) ? "tree-path" : isSeen(text) ? "tree-seen" : "");
      for (const [text, edge] of edges) edge.setAttribute("class", `tree-edge ${mode(text)}`);
      for (const [text, node] of nodes) node.setAttribute("class", `tree-node ${mode(text)}`);
      bars.forEach((bar, i) => bar.setAttribute("class", `tree-mass ${mode(leaves[i])}`));
      const x = u * WIDTH;
      mark.setAttribute("d", way === "dumb" ? `M${x} 146v20` : "");
      name.setAttribute("x", Math.max(16, Math.min(WIDTH - 16, x)));
      name.textContent = way === "dumb" ? `u = ${u.toFixed(2)}` : "";
      evaluations.value.textContent = way === "dumb" ? DEPTH * n : n;
      other.value.textContent = way === "dumb" ? DEPTH : DEPTH * planned.dumb;
    }

    const steps = Stage.stepper(stage, {
      length,
      render,
      say: (n) => say(way, planned, n),
      milliseconds: 350,
    });
    const again = Stage.button("New draw", () => {
      seed += 1;
      planned = plan(seed);
      steps.show(0);
    });
    const ways = Stage.radios("Way of sampling", { dumb: "Dumb", quick: "Autoregressive" }, way, (chosen) => {
      way = chosen;
      steps.show(0);
    });
    stage.append(
      element("div", { class: "stage-row" }, ways, steps.bar, again),
      picture,
      element("div", { class: "stage-counts" }, evaluations.group, other.group),
      steps.line,
    );
    steps.show(length());
    return { way: [Stage.pick(ways), "quick"], step: [Stage.whole(steps.show, steps.step, 0, 99), 99] };
  });
}
