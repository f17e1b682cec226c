/* Draws a view with plotly, where explorable-geometry.js says that each value lies. */
(function () {
  "use strict";
  const { BEHIND, geometry } = window.ExplorableGeometry;
  const { element, svg } = Elements;

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

  function plotlyTraces(spec, view, ink) {
    const many = view.traces.length > 12;
    const order = [...view.traces].sort((a, b) => rank(a) - rank(b));
    return order.flatMap((trace) => {
      const { curve } = trace, color = ink.of(curve.color);
      const common = { x: trace.x, y: trace.y, name: curve.name, hoverinfo: "skip", showlegend: false };
      const ceiling = curve.role === "ceiling";
      if (spec.mark === "bar") {
        const marker = curve.dash.length
          ? { color: "rgba(0,0,0,0)", line: { color, width: 1.5 } }
          : { color };
        return [{
          ...common,
          type: "bar",
          orientation: "h",
          marker,
          ...errors(view, trace, color),
        }];
      }
      const lines = ceiling || spec.mark.startsWith("line");
      const width = { ceiling: 1.5, computer: 4 }[curve.role] || (many ? 1.4 : 2.4);
      if (curve.role === "browser") {
        const marker = { symbol: "circle-open", color, size: 11, line: { width: 2 } };
        return [{ ...common, type: "scatter", mode: "markers", marker, cliponaxis: false }];
      }
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
    return { ceiling: 0, series: 1, computer: 2, browser: 3 }[curve.role];
  }

  function band(trace, color, common) {
    const edge = { ...common, type: "scatter", mode: "lines", line: { width: 0, color } };
    return [{ ...edge, y: trace.low }, {
      ...edge,
      y: trace.high,
      fill: "tonexty",
      fillcolor: rgba(color, 0.16),
    }];
  }

  function errors(view, trace, color) {
    if (!trace.low) return {};
    const along = view.y.low ? "y" : "x";
    const bars = {
      type: "data",
      symmetric: false,
      color,
      thickness: 1.5,
      width: 4,
      array: trace.high.map((high, i) => high - trace[along][i]),
      arrayminus: trace.low.map((low, i) => trace[along][i] - low),
    };
    return { [`error_${along}`]: bars };
  }

  function plotlyLayout(g, frame, view, ink, sizes) {
    const axis = (scaled, ticks) => ({
      type: scaled.category ? "category" : scaled.axis.log ? "log" : "linear",
      range: scaled.range,
      autorange: false,
      fixedrange: true,
      categoryorder: "array",
      categoryarray: scaled.names,
      tickmode: "array",
      tickvals: ticks.map(([value]) => value),
      ticktext: ticks.map(([, text]) => text),
      showgrid: !scaled.category,
      gridcolor: ink.grid,
      gridwidth: 1,
      griddash: "solid",
      zeroline: false,
      ticks: "outside",
      ticklen: 6,
      tickcolor: "rgba(0,0,0,0)",
      tickangle: 0,
      showline: false,
      tickfont: { size: sizes.tick, color: ink.quiet },
    });
    const text = (content, more) => ({
      text: content,
      xref: "paper",
      yref: "paper",
      showarrow: false,
      borderpad: 0,
      ...more,
    });
    const titles = [];
    if (!g.y.category) {
      titles.push(text(view.y.caption, {
        name: "y title",
        x: 0,
        y: 1,
        xshift: -g.left,
        yshift: 12,
        xanchor: "left",
        yanchor: "bottom",
        font: { size: sizes.label, color: ink.text },
      }));
    }
    const labels = g.labels.map((label) =>
      text(label.name, {
        x: label.x,
        y: label.at / g.height,
        xanchor: "left",
        yanchor: "middle",
        xshift: BEHIND,
        font: { size: sizes.label, color: ink.of(`${label.curve.color}-text`), weight: 600 },
      })
    );
    return {
      width: frame.clientWidth,
      height: frame.clientHeight,
      autosize: false,
      margin: { l: g.left, r: g.right, t: g.top, b: g.bottom, pad: 0, autoexpand: false },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: ink.font, color: ink.text },
      hovermode: false,
      dragmode: false,
      showlegend: false,
      barmode: "group",
      bargap: 0.32,
      bargroupgap: 0.08,
      xaxis: {
        ...axis(g.x, g.xTicks),
        title: { text: view.x.caption, standoff: 12, font: { size: sizes.label, color: ink.text } },
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
    const traces = plotlyTraces(spec, view, ink);
    window.Plotly.react(plot, traces, plotlyLayout(g, frame, view, ink, sizes), {
      staticPlot: true,
      displayModeBar: false,
    });
    return g;
  }

  /* A piece of what is drawn, as in the legend that controls.py writes. */
  function swatch(mark, { color, dash, role }) {
    const strokes = dash.length ? { "stroke-dasharray": dash.join(" ") } : {};
    const line = svg("path", { d: "M0 5H22", ...strokes });
    const square = { d: "M1 1h8v8H1Z", "stroke-width": 1.5, fill: dash.length ? "none" : "currentColor" };
    const [width, ...shapes] = {
      "line": [22, line],
      "line+dot": [24, line, svg("circle", { cx: 20.5, cy: 5, r: 2 })],
      "dot": [10, svg("circle", { cx: 5, cy: 5, r: 3.5 })],
      "bar": [10, svg("path", square)],
    }[role === "ceiling" ? "line" : mark];
    const about = { class: "explorable-swatch", color: `var(--${color})`, width, height: 10 };
    return svg("svg", { ...about, "aria-hidden": "true" }, ...shapes);
  }

  /* List items that name what nothing in the drawing names: neither a label nor an axis. */
  function unnamed(spec, view, { labels, y }) {
    const said = new Set([...labels.map(({ name }) => name), ...(y.names || [])]);
    const curves = new Map(view.traces.map(({ curve }) => [curve.name, curve]));
    const hollow = view.traces.some(({ curve }) => curve.role === "browser");
    return [...curves.values()].filter(({ name, role }) => role !== "browser" && !said.has(name))
      .map((curve) => [swatch(spec.mark, curve), curve.name])
      .concat(hollow ? [["○ This browser"]] : []).map((parts) => element("li", {}, parts));
  }

  window.ExplorableDraw = { draw, rgba, unnamed };
})();
