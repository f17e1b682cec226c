"use strict";

/* The memory lab's picture of its state, as squares. */

window.MemoryPictures ??= (() => {
  const { svg } = Stage;
  const { range } = MemoryLab;
  const LEVELS = 12; // of darkness, each a path, since thousands of squares would be slow to draw

  /* A grid with a square for each number, darker for a larger one. */
  function grid(rows, count, x, y, width, height) {
    const [w, h] = [width / count, height / rows], gap = Math.min(1, w / 8), node = svg("g");
    const [wide, high, back] = [w - gap, h - gap, gap - w].map((one) => one.toFixed(2));
    const square = (i) =>
      `M${(x + (i % count) * w).toFixed(2)} ${(y + Math.floor(i / count) * h).toFixed(2)}`
      + `h${wide}v${high}h${back}z`;
    return {
      node,
      paint(numbers) {
        const levels = new Map(), most = Math.max(...numbers.map(Math.abs)) || 1;
        numbers.forEach((number, i) => {
          const level = Math.sign(number) * Math.round(LEVELS * (Math.abs(number) / most) ** 0.7);
          levels.set(level, (levels.get(level) ?? "") + square(i));
        });
        node.replaceChildren(...[...levels].map(([level, d]) =>
          svg("path", {
            class: level < 0 ? "memory-below" : "",
            "fill-opacity": (0.04 + (0.96 * Math.abs(level)) / LEVELS).toFixed(3),
            d,
          })
        ));
      },
    };
  }

  const MINI = 66, BOX = 136, TOP = 36, STRIP = 8, FROM = STRIP + 5, TO = 118, LINE = 15;
  const written = (x, y, anchor, ...children) => svg("text", { x, y, "text-anchor": anchor }, ...children);

  /* The state: the last outer product, S, the query and the answer. */
  class StatePicture {
    constructor(lab) {
      this.lab = lab;
      this.picture = svg("svg", { viewBox: "0 0 256 226", role: "img" });
    }

    /* Makes the grids for the chosen width. */
    lay() {
      const { width: d } = this.lab.rules, below = TOP + BOX + 6;
      this.grids = {
        k: grid(d, 1, 2, TOP, STRIP, MINI),
        u: grid(1, d, FROM, TOP - STRIP - 3, MINI, STRIP),
        added: grid(d, d, FROM, TOP, MINI, MINI),
        q: grid(d, 1, TO - STRIP - 3, TOP, STRIP, BOX),
        S: grid(d, d, TO, TOP, BOX, BOX),
        o: grid(1, d, TO, below, BOX, STRIP),
        v: grid(1, d, TO, below + LINE, BOX, STRIP),
        said: grid(1, d, TO, below + 2 * LINE, BOX, STRIP),
      };
      const [o, v, said] = range(3).map((i) => written(TO - 8, below + i * LINE + 8, "end"));
      this.labels = {
        o,
        v,
        said,
        pair: written(FROM, TOP + MINI + 15, "start"),
        rule: written(FROM, 14, "start"),
      };
      this.picture.replaceChildren(
        svg("rect", { class: "memory-frame", x: FROM - 1, y: TOP - 1, width: MINI + 1, height: MINI + 1 }),
        svg("rect", { class: "memory-frame", x: TO - 1, y: TOP - 1, width: BOX + 1, height: BOX + 1 }),
        svg("path", { class: "memory-arrow", d: `M${FROM + MINI + 5} ${TOP + MINI / 2}h10m-4 -4l4 4l-4 4` }),
        written(TO + BOX, 14, "end", svg("tspan", { class: "memory-strong" }, "S"), `, ${d} × ${d}`),
        written(TO - 4, TOP - 6, "end", "φ(q)"),
        ...Object.values(this.grids).map(({ node }) => node),
        ...Object.values(this.labels),
      );
    }

    draw(n, here, answer) {
      const { words, pairs, states, rules } = this.lab, { grids, labels } = this;
      const { S, f, u } = states[n], { width: d } = rules, none = Array(d).fill(0);
      const valueOf = (said) => pairs[words.findIndex(([, value]) => value === said)].v;
      grids.S.paint(S.flat());
      grids.k.paint(n ? f : none);
      grids.u.paint(n ? u : none);
      grids.added.paint(n ? f.flatMap((a) => u.map((b) => a * b)) : Array(d * d).fill(0));
      grids.q.paint(answer?.f ?? none);
      grids.o.paint(answer?.o ?? none);
      grids.v.paint(answer ? valueOf(answer.wanted) : none);
      grids.said.paint(answer ? valueOf(answer.state.said) : none);
      labels.rule.textContent = rules.delta ? "φ(k) (v − Sᵀφ(k))ᵀ" : "φ(k) vᵀ";
      labels.pair.textContent = n ? words[n - 1].join(" → ") : "";
      labels.o.textContent = answer ? `answer to ${words[here][0]}` : "";
      labels.v.textContent = answer ? `wanted: ${answer.wanted}` : "";
      labels.said.textContent = answer ? `nearest: ${answer.state.said}` : "";
      labels.said.setAttribute("class", answer && answer.state.said !== answer.wanted ? "memory-strong" : "");
      this.picture.setAttribute(
        "aria-label",
        n ? `Written last: ${words[n - 1].join(" to ")}. The state, ${d} by ${d} numbers.` : "An empty state",
      );
      this.picture.querySelector(".memory-slide")?.remove();
    }

    /* Moves the last pair's outer product onto the state. */
    slide() {
      const scale = BOX / MINI, copy = this.grids.added.node.cloneNode(true);
      copy.setAttribute("class", "memory-slide");
      copy.style.setProperty(
        "--to",
        `translate(${TO - scale * FROM}px, ${TOP * (1 - scale)}px) scale(${scale})`,
      );
      this.picture.append(copy);
    }
  }

  return { StatePicture };
})();
