/* Says where on the screen each value of a view lies. Ranges, ticks and margins are computed here,
   so that labels, the reading cursor and the level line need nothing from plotly's internals. */
(function () {
  "use strict";
  const model = window.ExplorableModel;
  const GAP = 16; // between two labels, px
  const BEHIND = 7; // from the end of a line to its label, px
  const SHIFTS = [0, 4, -4, 8, -8, 12, -12, 16, -16]; // of a label that lines would strike, px
  const MOST_LABELS = 8;
  const LABEL_WIDTH = 560; // px of figure from which lines carry their names
  const MOST_WIDTH = 0.42; // of it for a name: the lines need the rest

  const canvas = document.createElement("canvas").getContext("2d");

  function textWidth(text, font) {
    canvas.font = font;
    return canvas.measureText(text).width;
  }

  /* The scale of one axis: value -> position in [0, 1] and back. */
  function scale(view, name, mark) {
    const axis = view[name];
    if (mark === "bar" && name === "y") {
      const names = [...new Set(view.traces.flatMap((trace) => trace.y))];
      return {
        axis,
        category: true,
        names,
        range: [names.length - 0.5, -0.5],
        to: (value) => 1 - (names.indexOf(value) + 0.5) / names.length,
      };
    }
    const spread = view.y.low ? name === "y" : name === "x";
    const bars = ({ low, high }) => (spread && low ? [low, high] : []);
    const columns = view.traces.flatMap((trace) => [trace[name], ...bars(trace)]);
    let [low, high] = axis.range || fitted(columns, mark, axis.log);
    const f = axis.log ? Math.log10 : Number;
    const inverse = axis.log ? (value) => 10 ** value : Number;
    if (!axis.range) {
      const room = (f(high) - f(low) || Math.abs(f(high)) || 1) * (name === "y" ? 0.05 : 0.015);
      const based = mark === "bar" && (axis.log || low === 0);
      [low, high] = [based ? low : inverse(f(low) - room), inverse(f(high) + room)];
    }
    return {
      axis,
      category: false,
      whole: view.counts[name],
      low,
      high,
      range: [f(low), f(high)],
      to: (value) => (f(value) - f(low)) / (f(high) - f(low)),
      from: (share) => inverse(f(low) + share * (f(high) - f(low))),
    };
  }

  /* Bars stand on zero; a log axis has none, so there they stand on the power of its base
     below the smallest, which keeps a length. */
  function fitted(columns, mark, base) {
    const ends = columns.map(model.extent);
    const low = Math.min(...ends.map(([end]) => end)), high = Math.max(...ends.map(([, end]) => end));
    if (mark !== "bar") return [low, high];
    if (!base) return [Math.min(0, low), Math.max(0, high)];
    return [base ** (Math.ceil(Math.log(low) / Math.log(base) - 1e-9) - 1), high];
  }

  function ticksOf(scaled, most) {
    if (scaled.category) return scaled.names.map((name) => [name, name]);
    if (scaled.axis.log) return model.logTicks(scaled.low, scaled.high, scaled.axis.log, most);
    return model.linearTicks(scaled.low, scaled.high, most, scaled.whole);
  }

  function labelEnds(spec, view, x, y) {
    const lines = spec.mark.startsWith("line");
    const ends = new Map();
    for (const { curve, ...trace } of view.traces) {
      if (curve.role === "browser") continue;
      if (!lines && curve.role !== "ceiling") continue;
      let i = trace.x.length - 1;
      while (i > 0 && x.to(trace.x[i]) > 1) i--;
      const at = { name: curve.name, curve, x: x.to(trace.x[i]), y: y.to(trace.y[i]) };
      if (at.y >= 0 && at.y <= 1 && !ends.has(at.name)) ends.set(at.name, at);
    }
    return [...ends.values()];
  }

  /* Push labels that stand side by side apart until none overlap, keeping their order. */
  function spreadOut(labels, { width, height }) {
    labels.sort((a, b) => a.y - b.y);
    for (const label of labels) {
      const left = label.x * width + BEHIND;
      Object.assign(label, { left, right: left + label.width + BEHIND });
    }
    const beside = (label, others) =>
      others.filter((other) => other.left < label.right && label.left < other.right);
    labels.forEach((label, i) => {
      label.at = Math.max(label.y * height, ...beside(label, labels.slice(0, i)).map(({ at }) => at + GAP));
    });
    for (let i = labels.length - 1; i >= 0; i--) {
      const above = beside(labels[i], labels.slice(i + 1)).map(({ at }) => at - GAP);
      labels[i].at = Math.min(labels[i].at, height, ...above);
    }
    return beside;
  }

  /* Out of the way of lines, where a label stands among them: a little higher or lower. */
  function stepAside(labels, beside, lines, { width, height }) {
    for (const label of labels.filter(({ right }) => right < width)) {
      const along = [0, 0.25, 0.5, 0.75, 1].map((part) => (label.left + part * label.width) / width);
      const passing = lines.flatMap(([xs, ys]) => along.map((x) => model.interpolate(xs, ys, x)))
        .filter((y) => y !== null).map((y) => y * height);
      const others = beside(label, labels.filter((other) => other !== label));
      const free = (at) =>
        at >= 0 && at <= height && others.every((other) => Math.abs(other.at - at) > GAP - 1);
      const struck = (at) => passing.filter((y) => Math.abs(y - at) < GAP / 2).length;
      const places = SHIFTS.map((shift) => label.at + shift).filter((at, i) => !i || free(at));
      label.at = places.reduce((best, at) => (struck(at) < struck(best) ? at : best));
    }
  }

  /* Every line in shares of the plot, the level that is asked for among them. */
  function linesOf(spec, view, x, y, level) {
    const drawn = view.traces.filter(({ curve }) => curve.role === "ceiling" || spec.mark.startsWith("line"));
    const lines = drawn.map((trace) => [trace.x.map(x.to), trace.y.map(y.to)]);
    return level === null ? lines : [...lines, [[0, 1], [y.to(level), y.to(level)]]];
  }

  function geometry(spec, view, frame, ink, sizes, level) {
    const width = frame.clientWidth, height = frame.clientHeight;
    const x = scale(view, "x", spec.mark), y = scale(view, "y", spec.mark);
    const top = y.category ? 8 : 32, bottom = 52;
    const font = `${sizes.tick}px ${ink.font}`;
    const yTicks = ticksOf(y, (height - top - bottom) / 44);
    const left = Math.ceil(Math.max(...yTicks.map(([, text]) => textWidth(text, font)), 12)) + 12;
    const ends = labelEnds(spec, view, x, y);
    for (const end of ends) end.width = textWidth(end.name, `600 ${sizes.label}px ${ink.font}`);
    const fit = ends.length <= MOST_LABELS && ends.every((end) => end.width <= MOST_WIDTH * width);
    const labels = width >= LABEL_WIDTH && fit ? ends : [];
    let right = 14;
    for (const label of labels) {
      const room = (1 - label.x) * (width - left - right);
      right = Math.max(right, label.width + 12 - room);
    }
    const xTicks = ticksOf(x, (width - left - right) / 60);
    const [value, text] = xTicks[xTicks.length - 1] || [null, ""];
    if (text) {
      const over = (1 - x.to(value)) * (width - left - right);
      right = Math.max(right, textWidth(text, font) / 2 + 3 - over);
    }
    const inner = { left, top, width: width - left - right, height: height - top - bottom };
    const beside = spreadOut(labels, inner);
    stepAside(labels, beside, linesOf(spec, view, x, y, level), inner);
    return { ...inner, right, bottom, x, y, xTicks, yTicks, labels, unlabelled: ends.length > labels.length };
  }

  window.ExplorableGeometry = { BEHIND, geometry };
})();
