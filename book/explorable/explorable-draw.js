/* Draws a view with plotly and says where on the screen each value lies.
   Ranges, ticks and margins are computed here, so that labels, the reading
   cursor and the level line need nothing from plotly's internals. */
(function () {
  "use strict";
  const model = window.ExplorableModel;
  const GAP = 16;        // between two labels, px
  const BEHIND = 7;      // from the end of a line to its label, px
  const SHIFTS = [0, 4, -4, 8, -8, 12, -12, 16, -16];  // of a label that lines would strike, px
  const MOST_LABELS = 8;
  const LABEL_WIDTH = 560;  // px of figure from which lines carry their names

  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

  /* Any CSS colour as rgba(): plotly does not know oklch() or color-mix(). */
  function rgba(color, alpha = 1) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    return `rgba(${r},${g},${b},${alpha})`;
  }

  function inkOf(element) {
    const style = getComputedStyle(element);
    return {
      text: rgba(style.color),
      quiet: rgba(style.color, 0.72),
      grid: rgba(style.color, 0.11),
      base: rgba(style.color, 0.4),
      font: style.fontFamily,
      of: (name) => style.getPropertyValue(`--${name}`).trim(),
    };
  }

  function textWidth(text, font) {
    canvas.font = font;
    return canvas.measureText(text).width;
  }

  function isCategory(view, name) {
    return view.traces.some((trace) => typeof trace[name][0] === "string");
  }

  /* The scale of one axis: value -> position in [0, 1] and back. */
  function scale(view, name, mark) {
    const axis = view[name];
    if (isCategory(view, name)) {
      const names = [...new Set(view.traces.flatMap((trace) => trace[name]))];
      const share = (value) => (names.indexOf(value) + 0.5) / names.length;
      return {
        axis, category: true, names,
        range: name === "y" ? [names.length - 0.5, -0.5] : [-0.5, names.length - 0.5],
        to: name === "y" ? (value) => 1 - share(value) : share,
      };
    }
    const spread = view.y.low ? name === "y" : name === "x";
    const columns = view.traces.flatMap((trace) =>
      [trace[name], ...(spread && trace.low ? [trace.low, trace.high] : [])]);
    let [low, high] = axis.range || fitted(columns, mark, axis.log);
    const f = axis.log ? Math.log10 : Number;
    const inverse = axis.log ? (value) => 10 ** value : Number;
    if (!axis.range) {
      const room = (f(high) - f(low) || Math.abs(f(high)) || 1) * (name === "y" ? 0.05 : 0.015);
      const based = mark === "bar" && (axis.log || low === 0);
      [low, high] = [based ? low : inverse(f(low) - room), inverse(f(high) + room)];
    }
    return {
      axis, category: false, low, high, range: [f(low), f(high)],
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
    return model.linearTicks(scaled.low, scaled.high, most);
  }

  function labelEnds(spec, view, x, y) {
    const lines = spec.mark.startsWith("line");
    const ends = new Map();
    for (const { curve, ...trace } of view.traces) {
      if (!lines && curve.role === "ceiling" ? x.category || y.category : !lines) continue;
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
      Object.assign(label, { left, right: left + label.width });
    }
    const beside = (label, others) => others.filter((other) => other.left < label.right && label.left < other.right);
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
      const free = (at) => at >= 0 && at <= height && others.every((other) => Math.abs(other.at - at) > GAP - 1);
      const struck = (at) => passing.filter((y) => Math.abs(y - at) < GAP / 2).length;
      const places = SHIFTS.map((shift) => label.at + shift).filter((at, i) => !i || free(at));
      label.at = places.reduce((best, at) => (struck(at) < struck(best) ? at : best));
    }
  }

  /* Every line in shares of the plot, the level that is asked for among them. */
  function linesOf(spec, view, x, y, level) {
    const drawn = view.traces.filter(({ curve }) => curve.role === "ceiling" || spec.mark.startsWith("line"));
    const lines = x.category || y.category ? [] : drawn.map((trace) => [trace.x.map(x.to), trace.y.map(y.to)]);
    return level === null ? lines : [...lines, [[0, 1], [y.to(level), y.to(level)]]];
  }

  function geometry(spec, view, frame, ink, sizes, level) {
    const width = frame.clientWidth, height = frame.clientHeight;
    const x = scale(view, "x", spec.mark), y = scale(view, "y", spec.mark);
    const top = y.category ? 8 : 32, bottom = x.category ? 32 : 52;
    const font = `${sizes.tick}px ${ink.font}`;
    const yTicks = ticksOf(y, (height - top - bottom) / 44);
    const left = Math.ceil(Math.max(...yTicks.map(([, text]) => textWidth(text, font)), 12)) + 12;
    const ends = labelEnds(spec, view, x, y);
    const labels = width >= LABEL_WIDTH && ends.length <= MOST_LABELS ? ends : [];
    let right = 14;
    for (const label of labels) {
      const room = (1 - label.x) * (width - left - right);
      label.width = textWidth(label.name, `600 ${sizes.label}px ${ink.font}`);
      right = Math.max(right, label.width + 12 - room);
    }
    const xTicks = ticksOf(x, (width - left - right) / 60);
    const [value, text] = xTicks[xTicks.length - 1] || [null, ""];
    if (!x.category && text) {
      const over = (1 - x.to(value)) * (width - left - right);
      right = Math.max(right, textWidth(text, font) / 2 + 3 - over);
    }
    const inner = { left, top, width: width - left - right, height: height - top - bottom };
    const beside = spreadOut(labels, inner);
    stepAside(labels, beside, linesOf(spec, view, x, y, level), inner);
    return { ...inner, right, bottom, x, y, xTicks, yTicks, labels, unlabelled: ends.length > labels.length };
  }

  function plotlyTraces(spec, view, g, ink) {
    const many = view.traces.length > 12;
    const order = [...view.traces].sort((a, b) => rank(a) - rank(b));
    return order.flatMap((trace) => {
      const { curve } = trace, color = ink.of(curve.color);
      const common = { x: trace.x, y: trace.y, name: curve.name, hoverinfo: "skip", showlegend: false };
      const ceiling = curve.role === "ceiling";
      if (!ceiling && spec.mark === "bar") {
        const marker = curve.dash.length ? { color: "rgba(0,0,0,0)", line: { color, width: 1.5 } } : { color };
        return [{ ...common, type: "bar", orientation: g.y.category ? "h" : "v", marker, ...errors(view, trace, color) }];
      }
      const lines = ceiling || spec.mark.startsWith("line");
      const width = { ceiling: 1.5, computer: 4 }[curve.role] || (many ? 1.4 : 2.4);
      const drawn = {
        ...common,
        type: "scatter",
        mode: lines ? (spec.mark === "line+dot" && !ceiling ? "lines+markers" : "lines") : "markers",
        line: { color, width, dash: curve.dash.map((n) => `${n}px`).join() || "solid", simplify: true },
        marker: { color, size: lines ? 7 : 10 },
        cliponaxis: Boolean(view.x.range || view.y.range) || spec.mark === "line",
      };
      if (spec.mark === "line" && trace.low) return [...band(trace, color, common), drawn];
      return [{ ...drawn, ...errors(view, trace, color) }];
    });
  }

  function rank({ curve }) {
    return { ceiling: 0, series: 1, computer: 2 }[curve.role];
  }

  function band(trace, color, common) {
    const edge = { ...common, type: "scatter", mode: "lines", line: { width: 0, color } };
    return [{ ...edge, y: trace.low }, { ...edge, y: trace.high, fill: "tonexty", fillcolor: rgba(color, 0.16) }];
  }

  function errors(view, trace, color) {
    if (!trace.low) return {};
    const along = view.y.low ? "y" : "x";
    const bars = {
      type: "data", symmetric: false, color, thickness: 1.5, width: 4,
      array: trace.high.map((high, i) => high - trace[along][i]),
      arrayminus: trace.low.map((low, i) => trace[along][i] - low),
    };
    return { [`error_${along}`]: bars };
  }

  function plotlyLayout(g, frame, view, ink, sizes) {
    const axis = (scaled, ticks) => ({
      type: scaled.category ? "category" : scaled.axis.log ? "log" : "linear",
      range: scaled.range, autorange: false, fixedrange: true,
      categoryorder: "array", categoryarray: scaled.names,
      tickmode: "array", tickvals: ticks.map(([value]) => value), ticktext: ticks.map(([, text]) => text),
      showgrid: !scaled.category, gridcolor: ink.grid, gridwidth: 1, griddash: "solid",
      zeroline: false, ticks: "outside", ticklen: 6, tickcolor: "rgba(0,0,0,0)", tickangle: 0, showline: false,
      tickfont: { size: sizes.tick, color: ink.quiet },
    });
    const text = (content, more) =>
      ({ text: content, xref: "paper", yref: "paper", showarrow: false, borderpad: 0, ...more });
    const titles = [];
    if (!g.y.category) {
      titles.push(text(view.y.caption, {
        name: "y title", x: 0, y: 1, xshift: -g.left, yshift: 12, xanchor: "left", yanchor: "bottom",
        font: { size: sizes.label, color: ink.text },
      }));
    }
    const labels = g.labels.map((label) => text(label.name, {
      x: label.x, y: label.at / g.height, xanchor: "left", yanchor: "middle", xshift: BEHIND,
      font: { size: sizes.label, color: ink.of(`${label.curve.color}-text`), weight: 600 },
    }));
    return {
      width: frame.clientWidth, height: frame.clientHeight, autosize: false,
      margin: { l: g.left, r: g.right, t: g.top, b: g.bottom, pad: 0, autoexpand: false },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: ink.font, color: ink.text },
      hovermode: false, dragmode: false, showlegend: false, barmode: "group", bargap: 0.32, bargroupgap: 0.08,
      xaxis: {
        ...axis(g.x, g.xTicks),
        title: g.x.category ? {} : { text: view.x.caption, standoff: 12, font: { size: sizes.label, color: ink.text } },
      },
      yaxis: axis(g.y, g.yTicks),
      annotations: [...titles, ...labels],
    };
  }

  /* Draws into `plot`, the size of `frame`; returns the geometry in px. `level` is the y of a line
     that the cursor lays over the plot, or null. */
  function draw(plot, frame, spec, view, level) {
    const ink = inkOf(frame);
    const sizes = frame.clientWidth < 480 ? { tick: 12, label: 12.5 } : { tick: 12.5, label: 13.5 };
    const g = geometry(spec, view, frame, ink, sizes, level);
    const traces = plotlyTraces(spec, view, g, ink);
    window.Plotly.react(plot, traces, plotlyLayout(g, frame, view, ink, sizes), { staticPlot: true, displayModeBar: false });
    return g;
  }

  const SVG = "http://www.w3.org/2000/svg";

  function svg(tag, attributes, ...children) {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  /* What a curve looks like, as controls.py draws it. */
  function swatch(bars, { color, dash, role }) {
    const stroke = `var(--${color})`, filled = bars && role === "series";
    const path = filled
      ? { d: "M1 1H21V9H1Z", stroke, "stroke-width": 1.5, fill: dash.length ? "none" : stroke }
      : { d: "M0 5H22", stroke, "stroke-width": 3, "stroke-dasharray": dash.join(" ") || "none" };
    return svg("svg", { class: "explorable-swatch", width: 22, height: 10, "aria-hidden": true }, svg("path", path));
  }

  /* List items that name what nothing in the drawing names: neither a label nor an axis. */
  function unnamed(spec, view, { labels, x, y }) {
    const said = new Set([...labels.map(({ name }) => name), ...(x.names || []), ...(y.names || [])]);
    const curves = new Map(view.traces.map(({ curve }) => [curve.name, curve]));
    return [...curves.values()].filter(({ name }) => !said.has(name)).map((curve) => {
      const item = document.createElement("li");
      item.append(swatch(spec.mark === "bar", curve), curve.name);
      return item;
    });
  }

  window.ExplorableDraw = { draw, rgba, unnamed };
})();
