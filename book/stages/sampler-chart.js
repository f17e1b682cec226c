"use strict";

/* The sampler's chart: the time of a letter against the letters read so far. */

window.SamplerChart ??= (() => {
  const { svg } = Stage;
  const NAMES = { softmax: "Softmax", window: "Window", linear: "Linear" };
  const COLOURS = { softmax: "film-softmax", window: "film-window", linear: "film-linear" };
  const HEIGHT = 210, TOP = 24, BOTTOM = 36, LEFT = 48;
  const ASIDE = 60; // px that a window's label stands left of linear attention's, whose line is as low

  const count = (n) => Elements.grouped(Math.round(n));
  const digits = (value) => Elements.grouped(Number(value.toPrecision(2)));

  /* 1, 2 or 5 times a power of ten, not below the value. */
  function roundUp(value) {
    const power = 10 ** Math.floor(Math.log10(value));
    return power * [1, 2, 5, 10].find((one) => one * power >= value * 0.999);
  }

  /* Multiply-adds of a letter after t others. bill: those of the first letter, those that each
     letter before adds, and how many of them add; null: all. */
  const work = ([first, grows, most], t) => first + grows * Math.min(t, most ?? t);

  /* Number of letters on the chart's axis. stored: whether the text began with stored ones. */
  const room = (reached, stored) =>
    stored ? roundUp(0.98 * reached) : 2 ** Math.ceil(Math.log2(Math.max(1024, reached)));

  /* Milliseconds of a multiply-add, from linear attention's letters; null before two points. */
  function price(writers, bills) {
    const known = writers.find(({ name }) => name === "linear")?.points ?? [];
    const sum = known.reduce((all, [, ms]) => all + ms, 0);
    return known.length > 1 ? sum / (known.length * bills.linear[0]) : null;
  }

  /* Data of the chart, up to letter `far`, in milliseconds if there is a price. writers: those at
     work. bills: {name: a bill, as for `work`}. */
  function charted(writers, bills, far) {
    const points = Object.fromEntries(writers.map(({ name, points }) => [name, points]));
    const found = price(writers, bills), timed = found !== null, unit = found ?? 1e-6;
    const counted = Stage.mapped(
      bills,
      (bill) => [0, bill[2] ?? far, far].map((t) => [t, work(bill, t) * unit]),
    );
    const times = Object.values(points).flatMap((list) => list.slice(1).map(([, ms]) => ms));
    return {
      timed,
      counted,
      points: timed ? points : {},
      high: roundUp(Math.max(...Object.values(counted).flat().map(([, value]) => value), ...times)),
    };
  }

  function drawChart(picture, width, writers, bills, far) {
    const { timed, counted, points, high } = charted(writers, bills, far), right = width - 8;
    const x = (t) => LEFT + ((right - LEFT) * t) / far,
      y = (value) => HEIGHT - BOTTOM - ((HEIGHT - TOP - BOTTOM) * Math.min(value, high)) / high;
    const text = (attributes, words) => svg("text", { class: "lines-tick", ...attributes }, words);
    const nodes = [
      text(
        { x: 0, y: 12 },
        timed ? "Milliseconds a letter (dashed: predicted)" : "Million multiply-adds a letter",
      ),
      text({ x: right, y: HEIGHT - 2, "text-anchor": "end" }, "Letters read so far"),
    ];
    for (const part of [0, 0.5, 1]) {
      nodes.push(
        svg("path", { class: "lines-grid", d: `M${LEFT} ${y(part * high)}H${right}` }),
        text({ x: LEFT - 8, y: y(part * high) + 4, "text-anchor": "end" }, digits(part * high)),
        text(
          { x: x(part * far), y: HEIGHT - BOTTOM + 16, "text-anchor": part === 1 ? "end" : "middle" },
          count(part * far),
        ),
      );
    }
    for (const [name, predicted] of Object.entries(counted)) {
      const [line, dashes] = [points[name] ?? [], predicted].map((all) =>
        Stage.path(all.map(([t, value]) => [x(t), y(value)]))
      );
      nodes.push(
        svg("path", { class: `sampler-counted ${COLOURS[name]}`, d: dashes }),
        svg("path", { class: `sampler-line ${COLOURS[name]}`, d: line }),
        svg("text", {
          class: `sampler-label ${COLOURS[name]}`,
          x: right - (name === "window" ? ASIDE : 0),
          y: y(predicted.at(-1)[1]) - 6,
          "text-anchor": "end",
        }, NAMES[name]),
      );
    }
    picture.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    picture.replaceChildren(...nodes);
  }

  return { COLOURS, NAMES, count, digits, drawChart, price, room, work };
})();
