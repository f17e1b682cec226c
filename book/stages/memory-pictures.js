"use strict";

/* The memory lab's pictures: the state as squares, and the curve of keys answered right. */

window.MemoryPictures ??= (() => {
  const { element, svg } = Stage;
  const { percent, range } = MemoryLab;
  const DRAWN = 24, DRAWS = 16; // pairs on the curve, lists it is a mean of
  const SHADES = 24; // that a square may have
  const SIDES = { cache: "memory-cache", state: "memory-state" };

  /* A grid of squares, a square for a number, darker for a larger one. Those of one shade are one
     path: at width 32 there are two thousand, and each as an element would be styled at every press. */
  function grid(rows, count, x, y, width, height) {
    const [w, h] = [width / count, height / rows], gap = Math.min(1, w / 8);
    const square = `h${(w - gap).toFixed(2)}v${(h - gap).toFixed(2)}h${(gap - w).toFixed(2)}z`;
    const node = svg("g");
    return {
      node,
      paint(numbers, most = Math.max(...numbers.map(Math.abs)) || 1) {
        const paths = new Map();
        numbers.forEach((number, i) => {
          const shade = Math.sign(number) * Math.round(SHADES * (Math.abs(number) / most) ** 0.7);
          const at = `M${(x + (i % count) * w).toFixed(2)} ${(y + Math.floor(i / count) * h).toFixed(2)}`;
          paths.set(shade, (paths.get(shade) ?? "") + at + square);
        });
        node.replaceChildren(...Array.from(paths, ([shade, d]) =>
          svg("path", {
            class: shade < 0 ? "memory-below" : null,
            "fill-opacity": (0.04 + (0.96 * Math.abs(shade)) / SHADES).toFixed(3),
            d,
          })));
      },
    };
  }

  const MINI = 66, BOX = 136, TOP = 36, STRIP = 8, FROM = STRIP + 5, TO = 118, LINE = 15;
  const written = (x, y, anchor, ...children) => svg("text", { x, y, "text-anchor": anchor }, ...children);

  /* The state: what was written last, S, the query and the answer. */
  class StatePicture {
    constructor(lab) {
      this.lab = lab;
      this.picture = svg("svg", { viewBox: "0 0 256 226", role: "img" });
    }

    /* The grids, for the width that is chosen. */
    lay() {
      const { width: d } = this.lab.settings, below = TOP + BOX + 6;
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
      this.most = Math.max(...this.lab.states.flatMap(({ S }) => S.flat().map(Math.abs)));
    }

    draw(n, here, answer) {
      const { words, pairs, states, settings } = this.lab, { grids, labels } = this;
      const { S, f, u } = states[n], { width: d } = settings, none = Array(d).fill(0);
      const valueOf = (said) => pairs[words.findIndex(([, value]) => value === said)].v;
      grids.S.paint(S.flat(), this.most);
      grids.k.paint(n ? f : none);
      grids.u.paint(n ? u : none);
      grids.added.paint(n ? f.flatMap((a) => u.map((b) => a * b)) : Array(d * d).fill(0));
      grids.q.paint(answer?.f ?? none);
      grids.o.paint(answer?.o ?? none);
      grids.v.paint(answer ? valueOf(answer.wanted) : none);
      grids.said.paint(answer ? valueOf(answer.state.said) : none);
      labels.rule.textContent = settings.delta ? "φ(k) (v − Sᵀφ(k))ᵀ" : "φ(k) vᵀ";
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

    /* What was written last moves onto the state. */
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

  /* The line with these options, one list nearer to the mean of all of them at each call. */
  const known = new Map();
  function mean(options) {
    const name = JSON.stringify(options);
    if (!known.has(name)) {
      known.set(name, { nearer: Recall.curve(options, DRAWN, DRAWS), line: null, lists: 0 });
    }
    const found = known.get(name);
    if (found.lists < DRAWS) {
      Object.assign(found, { line: found.nearer.next().value, lists: found.lists + 1 });
    }
    return found;
  }

  const HEIGHT = 160, LEFT = 30, BOTTOM = 36, UP = 20;
  const y = (share) => HEIGHT - BOTTOM - (HEIGHT - UP - BOTTOM) * share;

  /* The curve: a line for any list, dots for this one. */
  class Curve {
    due = 0; // the next frame in which it is drawn

    constructor(lab) {
      this.lab = lab;
      this.graph = svg("svg", {
        role: "img",
        "aria-label": "Share of the keys answered right against the number of pairs written",
      });
      this.frame = element(
        "div",
        { class: "memory-curve" },
        this.graph,
        element(
          "p",
          { class: "memory-quiet" },
          `Lines: the mean of ${DRAWS} lists of random pairs. Dots: the list above.`,
        ),
      );
    }

    /* True once both lines are the mean of all lists. */
    draw(scores) {
      const { settings } = this.lab, width = Math.max(200, this.frame.clientWidth || 300);
      const x = (i) => LEFT + ((width - LEFT - 8) * (i - 1)) / (DRAWN - 1);
      const lines = { cache: mean({ width: settings.width }), state: mean(settings) };
      const close = lines.cache.line.at(-1) - lines.state.line.at(-1) < 0.15;
      const side = (name, label, below) => {
        const { line } = lines[name];
        return svg(
          "g",
          { class: SIDES[name] },
          svg("path", {
            d: line.map((share, i) => `${i ? "L" : "M"}${x(i + 1).toFixed(1)} ${y(share).toFixed(1)}`).join(
              "",
            ),
          }),
          ...scores.map((found, i) =>
            svg("circle", {
              cx: x(i + 1),
              cy: y(found[name] / found.of),
              r: i === scores.length - 1 ? 4.5 : 2.5,
            })
          ),
          svg("text", { x: width - 8, y: y(line.at(-1)) + (below ? 15 : -7), "text-anchor": "end" }, label),
        );
      };
      this.graph.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
      this.graph.replaceChildren(
        ...[0, 0.5, 1].flatMap((share) => [
          svg("path", { class: "roofline-grid", d: `M${LEFT} ${y(share)}H${width}` }),
          svg(
            "text",
            { class: "roofline-tick", x: LEFT - 6, y: y(share) + 4, "text-anchor": "end" },
            percent(share),
          ),
        ]),
        ...[1, 8, 16, DRAWN].map((i) =>
          svg(
            "text",
            { class: "roofline-tick", x: x(i), y: HEIGHT - BOTTOM + 15, "text-anchor": "middle" },
            i,
          )
        ),
        svg("text", { class: "roofline-tick", x: 0, y: 10 }, "Keys answered right, %"),
        svg(
          "text",
          { class: "roofline-tick", x: width, y: HEIGHT - 1, "text-anchor": "end" },
          "pairs written",
        ),
        side("cache", "softmax", false),
        side("state", "linear", close),
      );
      return lines.cache.lists === DRAWS && lines.state.lists === DRAWS;
    }

    // Once a frame: an address that sets five controls would have five curves computed. And a list a
    // frame: all of them at once would hold up a phone for a third of a second. The pressed
    // element is painted first.
    drawSoon(step) {
      cancelAnimationFrame(this.due);
      const next = (act) => (this.due = requestAnimationFrame(act));
      next(() =>
        next(() => {
          const scores = range(step()).map((i) => this.lab.score(i + 1));
          const goOn = () => this.draw(scores) || next(goOn);
          goOn();
        })
      );
    }
  }

  return { Curve, SIDES, StatePicture };
})();
