"use strict";

/* A text as a ribbon: it has a planted passage, then other text, then the passage again. The reader
   drags the first one further back, and sees below how much of it remains. The lines and one passage
   of a novel are data from the page's figures module: element #ribbon-data. */

{
  const { element, svg } = Stage, { grouped: count } = Elements;
  const MOST = 16384, LEFT = 34, RIGHT = 58, UP = 18, BAND = 44, TOP = 108, HEIGHT = 172, BOTTOM = 34;
  const APART = 44; // px between two numbers of the axis
  const KINDS = {
    novel: {
      name: "a novel",
      unit: "bytes",
      axis: "Loss saved, thousandths of a nat a byte",
      planted: "this 64-byte passage",
      again: "repeated here",
      error: "95% interval",
      least: 32,
      most: 20,
      ticks: [0, 10, 20],
      of: (value, low, high) => `${tidy(value)} ± ${tidy((high - low) / 2)}`,
      is: "Loss saved the second time, in thousandths of a nat a byte, with its 95% interval",
    },
    noise: {
      name: "noise",
      unit: "tokens",
      axis: "Questions answered right, %",
      planted: "these 8 pairs of key and value",
      again: "asked for here",
      error: "range over seeds",
      least: 4,
      most: 100,
      ticks: [0, 50, 100],
      of: (value, low, high) => `${Math.round(value)}% (${Math.round(low)} to ${Math.round(high)})`,
      is: "Answered right, mean and range over seeds",
    },
  };
  KINDS.pairs = { ...KINDS.noise, name: "other pairs of key and value" };
  const dashes = (color) => (color === "gated" ? "lines-dashed" : ""); // also blue
  const tidy = (value) => value.toFixed(Math.abs(value) < 1 ? 2 : 1).replace("-", "−");
  const text = (attributes, ...words) => svg("text", { class: "lines-tick", ...attributes }, ...words);

  /* Contents in between: words of a text, specks of noise, or pairs, always in the same places. */
  function texture(kind, from, to) {
    const next = Stage.random(7), marks = [];
    for (let x = 4; x < 900;) {
      const wide = kind === "novel" ? 5 + 16 * next() : kind === "noise" ? 3 : 11;
      const rows = [[13, 0], [22, 1], [31, 2]];
      for (const [y] of rows) {
        const shift = kind === "pairs" ? 0 : 4 * next();
        if (x >= from && x + wide <= to && next() < 0.85) marks.push([x + shift, y, wide]);
      }
      x += wide + (kind === "novel" ? 4 : 6);
    }
    const d = kind === "pairs"
      ? marks.map(([x, y]) => `M${x} ${y - 3}h5v6h-5zM${x + 6} ${y - 3}h5v6h-5z`)
      : marks.map(([x, y, wide]) => `M${x.toFixed(1)} ${y - 1.5}h${wide.toFixed(1)}v3h-${wide.toFixed(1)}z`);
    return svg("path", { class: "ribbon-text", d: d.join("") });
  }

  class Ribbon {
    constructor(between) {
      this.between = between;
      this.picture = svg("svg", { class: "ribbon", role: "img" });
      this.frame = element("div", { class: "ribbon-frame" }, this.picture);
    }

    x(distance) {
      const right = this.width - RIGHT, { least } = KINDS[this.kind];
      return right - (Math.log2(distance / least) / Math.log2(MOST / least)) * (right - LEFT - 8);
    }
    /* The distance in `list` nearest to a place on the screen. */
    nearest(clientX, list) {
      const box = this.picture.getBoundingClientRect(), at = clientX - box.left;
      const off = (distance) => Math.abs(this.x(distance) - at);
      return list.reduce((best, one) => (off(one) < off(best) ? one : best));
    }

    draw(kind, distance, said) {
      Object.assign(this, { kind, width: Math.max(280, this.frame.clientWidth) });
      const { width } = this, at = this.x(distance), bottom = TOP + HEIGHT, now = width - RIGHT;
      const { axis, most, ticks, planted, again, unit } = KINDS[kind], lines = this.between[kind];
      const y = (value) => bottom - (HEIGHT * Math.min(most, Math.max(-0.06 * most, value))) / most;
      const block = (x, wide, css) =>
        svg("rect", { class: css, x, y: 2, width: wide, height: BAND - 4, rx: 3 });
      const asked = lines.flatMap(({ points }) => points.map(([d]) => d));
      // The distance of the picture, and others with enough space.
      const numbers = [distance, ...asked].reduce(
        (all, d) => all.some((one) => Math.abs(this.x(one) - this.x(d)) < APART) ? all : [...all, d],
        [],
      );
      this.picture.setAttribute("viewBox", `0 0 ${width} ${bottom + BOTTOM}`);
      this.picture.setAttribute("aria-label", said);
      this.picture.replaceChildren(
        text({ x: Math.max(90, Math.min(width - 90, at)), y: 12, "text-anchor": "middle" }, planted),
        svg(
          "g",
          { transform: `translate(0 ${UP})` },
          svg("rect", { class: "ribbon-band", x: 0, y: 2, width, height: BAND - 4 }),
          texture(kind, 0, at - 24),
          texture(kind, at + 22, now - 4),
          block(at - 20, 40, "ribbon-planted"),
          block(now, RIGHT - 4, "ribbon-again"),
          text({ class: "ribbon-inside", x: at, y: 26, "text-anchor": "middle" }, "⟷"),
          text({ class: "ribbon-inside", x: now + (RIGHT - 4) / 2, y: 26, "text-anchor": "middle" }, "again"),
        ),
        text(
          { x: width - 4, y: UP + BAND + 14, "text-anchor": "end" },
          `${again}, ${count(distance)} ${unit} later`,
        ),
        svg("path", { class: "ribbon-here", d: `M${at} ${TOP}V${bottom}` }),
        text({ x: 0, y: TOP - 10 }, axis),
        ...ticks.flatMap((value) => [
          svg("path", { class: "lines-grid", d: `M${LEFT} ${y(value)}H${now}` }),
          text({ x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, value),
        ]),
        ...numbers.map((d) => {
          const bold = d === distance ? 700 : null;
          return text(
            { x: this.x(d), y: bottom + 17, "text-anchor": "middle", "font-weight": bold },
            count(d),
          );
        }),
        text({ x: now, y: bottom + 32, "text-anchor": "end" }, `← further back, in ${unit} (log scale)`),
        ...lines.map(({ color, points }, i) => {
          const shift = 3 * (i - (lines.length - 1) / 2); // so that error bars do not overlap
          const place = points.map(([d, value]) => [this.x(d) + shift, y(value)]);
          const bars = points.map(([d, , low, high]) =>
            svg("path", {
              class: `ribbon-error${d === distance ? " ribbon-chosen" : ""}`,
              d: `M${this.x(d) + shift} ${y(low)}V${y(high)}`,
            })
          );
          const dots = place.map(([cx, cy], i) =>
            svg("circle", { cx, cy, r: points[i][0] === distance ? 5.5 : 2.5 })
          );
          const line = svg("path", { class: `lines-line ${dashes(color)}`, d: Stage.path(place) });
          return svg("g", { class: "ribbon-line", style: `--line: var(--${color})` }, line, ...bars, ...dots);
        }),
      );
    }
  }

  Stage.mountStored("ribbon", (stage, { between, example, sources }) => {
    const ribbon = new Ribbon(between), names = element("ul", { class: "lines-names" });
    const line = element("p", { class: "stage-line", role: "status" });
    const words = element("p", { class: "ribbon-words" });
    const all = [...new Set(Object.values(between).flat().flatMap(({ points }) => points.map(([d]) => d)))]
      .sort((a, b) => b - a); // as in the picture: the nearest is on the right
    let kind = "novel", distance = 256;
    const list = () =>
      all.filter((d) => between[kind].some(({ points }) => points.some(([one]) => one === d)));

    function say(found) {
      const { unit, is } = KINDS[kind];
      const parts = found.map(({ name, words }) => `${name} ${words}`).join(", ");
      return `${count(distance)} ${unit} back. ${is}: ${parts}.`;
    }

    /* The example's own words, with the passage twice. */
    function tell() {
      const { novel, passage, places } = example, [after, left, before] = example.between[distance] ?? [];
      const marked = () => element("mark", {}, passage);
      words.hidden = kind !== "novel";
      words.replaceChildren(
        element("b", {}, "Repeated: "),
        marked(),
        ...(left ? [after, element("i", {}, ` … ${count(left)} bytes … `), before] : []),
        marked(),
        element("i", {}, ` (${novel}; one of ${places} passages, each cut at 64 bytes)`),
      );
    }

    function render() {
      const found = between[kind].map(({ color, name, points }) => {
        const point = points.find(([d]) => d === distance);
        return { color, name, words: point ? KINDS[kind].of(...point.slice(1)) : "not asked" };
      });
      line.textContent = say(found);
      names.replaceChildren(
        ...found.map(({ color, name }) => Stage.lined(name, `var(--${color})`, dashes(color))),
        Stage.named(KINDS[kind].error, [svg("path", { class: "ribbon-error", d: "M11 -2V12" })]),
      );
      tell();
      ribbon.draw(kind, distance, `Against the distance. ${line.textContent}`);
    }

    /* Goes to the nearest distance that was measured with what is between. */
    function move(wanted) {
      const off = (one) => Math.abs(Math.log(one / wanted));
      distance = list().reduce((best, one) => (off(one) < off(best) ? one : best));
      back.put(all.indexOf(distance));
      render();
    }
    const back = Stage.slider("ribbon-back", "How far back", all, distance, move);
    const kinds = Stage.radios("What stands between", KINDS, kind, (chosen) => {
      kind = chosen;
      move(distance);
    });
    const { picture, frame } = ribbon;
    for (const type of ["pointerdown", "pointermove"]) {
      picture.addEventListener(type, (event) => {
        if (type === "pointerdown") picture.setPointerCapture(event.pointerId);
        else if (!picture.hasPointerCapture(event.pointerId)) return;
        move(ribbon.nearest(event.clientX, list()));
      });
    }
    stage.append(
      element("div", { class: "stage-row" }, kinds, back),
      names,
      frame,
      line,
      words,
      Stage.provenance(sources),
    );
    new ResizeObserver(render).observe(frame); // the first time when it is laid out
    return {
      between: [Stage.pick(kinds), "novel"],
      back: [Stage.slide(back, all), 256],
    };
  });
}
