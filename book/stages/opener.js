"use strict";

/* The book in one picture. A short text is read letter by letter, with vectors of D numbers. Above
   it, softmax attention reads its growing cache at every letter; below it, linear attention adds
   each letter to a state of fixed size. */

{
  const { element, svg } = Stage;
  const TEXT = [..."I like penguins"], T = TEXT.length, D = 4;
  const COLUMN = 30,
    CELL = 7,
    ARCS = 50,
    CACHE = ARCS + 4,
    LETTERS = CACHE + D * CELL + 20,
    STATE = LETTERS + 16;
  const WIDTH = T * COLUMN, HEIGHT = STATE + D * CELL + 2;
  const reads = { softmax: (t) => 2 * D * t, linear: () => D * D + D };
  const total = { softmax: (t) => D * t * (t + 1), linear: (t) => t * reads.linear() };

  const next = Stage.random(7);
  const letters = new Map();
  const draw = () => Array.from({ length: 2 * D }, () => 2 * next() - 1);
  const vectors = TEXT.map((letter) => letters.get(letter) ?? letters.set(letter, draw()).get(letter));
  const phi = (x) => (x > 0 ? x + 1 : Math.exp(x));
  /* After each letter: D columns of S and one of z. */
  const states = vectors.reduce((list, vector) => {
    const k = vector.slice(0, D).map(phi), weights = [...vector.slice(D), 1];
    return [...list, list.at(-1).map((column, i) => column.map((a, j) => a + k[j] * weights[i]))];
  }, [Array.from({ length: D + 1 }, () => Array(D).fill(0))]);
  const most = Math.max(...states.flat(2).map(Math.abs));

  const middle = (i) => (i + 0.5) * COLUMN;
  const cells = (columns, x, y, scale) =>
    Stage.squares(columns, (value) => 0.2 + 0.8 * Math.sqrt(Math.abs(value) / scale), { x, y, side: CELL });

  function cache(t) {
    return svg(
      "g",
      { class: "opener-softmax" },
      ...Array.from(
        { length: t },
        (_, i) => cells([vectors[i].slice(0, D), vectors[i].slice(D)], middle(i) - CELL, CACHE, 1),
      ).flat(),
      ...Array.from({ length: t }, (_, i) => {
        const lift = 8 + ((2 * ARCS - 12) * (t - 1 - i)) / T;
        return svg("path", {
          d: `M${middle(t - 1)} ${ARCS}Q${(middle(i) + middle(t - 1)) / 2} ${ARCS - lift} ${
            middle(i)
          } ${ARCS}`,
        });
      }),
    );
  }

  function state(t) {
    const width = (D + 1) * CELL, here = t ? middle(t - 1) : middle(0);
    const x = Math.min(Math.max(here - width / 2, 1), WIDTH - width - 1);
    return svg(
      "g",
      { class: "opener-linear" },
      t ? svg("path", { d: `M1 ${STATE + (D * CELL) / 2}H${x}` }) : null,
      t ? svg("path", { d: `M${here} ${LETTERS + 4}V${STATE - 3}` }) : null,
      svg("rect", {
        class: "opener-box",
        x: x - 2,
        y: STATE - 2,
        width: width + 3,
        height: D * CELL + 3,
        rx: 2,
      }),
      ...cells(states[t], x, STATE, most),
    );
  }

  Stage.mount("opener", (stage) => {
    const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
    const holder = element("div", {
      class: "opener-picture",
      tabindex: "0",
      role: "group",
      "aria-label": "Picture. Arrow keys step, space plays and pauses.",
    }, picture);
    const sides = Stage.mapped({ softmax: "Softmax", linear: "Linear" }, (name, key) => {
      const now = element("b"), sum = element("span", { class: "opener-sum" }), bar = element("i");
      const node = element(
        "section",
        { class: `opener-side opener-${key}`, "aria-label": name },
        element("p", { class: "opener-name" }, name),
        element("p", {}, "reads ", now, " numbers now,"),
        element("p", {}, sum, " in all"),
        element("div", { class: "opener-bar", "aria-hidden": "true" }, bar),
      );
      return { node, now, sum, bar };
    });

    function render(t) {
      picture.replaceChildren(
        cache(t),
        svg(
          "g",
          { class: "opener-text" },
          ...TEXT.map((letter, i) =>
            svg("text", {
              class: i === t - 1 ? "opener-now" : i < t ? "" : "opener-ahead",
              x: middle(i),
              y: LETTERS,
              "text-anchor": "middle",
            }, letter === " " ? "␣" : letter)
          ),
        ),
        state(t),
      );
      picture.setAttribute(
        "aria-label",
        `After ${t} of ${T} letters: a cache of ${
          reads.softmax(t)
        } numbers above the text, and a state of ${reads.linear()} below it.`,
      );
      for (const [key, { now, sum, bar }] of Object.entries(sides)) {
        now.textContent = t ? reads[key](t) : 0;
        sum.textContent = total[key](t);
        bar.style.width = `${(100 * total[key](t)) / total.softmax(T)}%`;
      }
    }

    function say(t) {
      if (!t) return "No letter read yet.";
      return `Letter ${t} of ${T}. Softmax reads ${reads.softmax(t)} numbers, ${
        total.softmax(t)
      } in all; linear ${reads.linear()}, ${total.linear(t)} in all.`;
    }

    const steps = Stage.stepper(stage, { length: () => T, render, say, milliseconds: 800 });
    steps.line.classList.add("figure-hidden");
    const press = () => (Stage.calm ? steps.show(steps.step() < T ? steps.step() + 1 : 0) : steps.toggle());
    holder.addEventListener("click", press);
    holder.addEventListener("keydown", (event) => {
      if (event.key !== " ") return;
      event.preventDefault();
      press();
    });
    stage.append(
      element("div", { class: "opener" }, sides.softmax.node, holder, sides.linear.node),
      steps.bar,
      steps.line,
    );
    // The picture for readers who want no motion. For others it moves when they scroll here,
    // from the letter at which softmax has read more.
    steps.show(Stage.calm ? T : TEXT.findIndex((_, t) => total.softmax(t) > total.linear(t)));
    if (Stage.calm) return;

    const watch = new IntersectionObserver((seen) => {
      if (seen.at(-1).intersectionRatio < 0.9) return;
      watch.disconnect();
      steps.start(true);
    }, { threshold: 0.9 });
    watch.observe(holder);
    for (const type of ["pointerdown", "keydown"]) {
      stage.addEventListener(type, () => watch.disconnect(), { once: true });
    }
  });
}
