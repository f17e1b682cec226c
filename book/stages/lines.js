"use strict";

/* A plot whose lines move smoothly from one state to the next, with handles that a reader drags.
   Lines are stored as shares of the plot, so that an axis may change its quantity while they
   move. */

window.Lines ??= (() => {
  const { element, svg } = Stage;
  const model = window.ExplorableModel;
  const MILLISECONDS = 800, LEFT = 44, TOP = 24, BOTTOM = 40, RIGHT = 16;
  const eased = (t) => (t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2);

  function scaleOf(axis) {
    const f = axis.log ? Math.log10 : Number, inverse = axis.log ? (value) => 10 ** value : Number;
    const [low, high] = axis.range, [from, to] = axis.range.map(f);
    return {
      axis,
      low,
      high,
      to: (value) => (f(value) - from) / (to - from),
      from: (share) => inverse(from + share * (to - from)),
    };
  }

  /* axis.at: positions of its ticks; by default round numbers. axis.text(value): their words. */
  function ticksOf({ axis, low, high }, most) {
    if (axis.at) return axis.at.flatMap((value) => model.logTicks(value, value, axis.log, 2));
    const ticks = axis.log ? model.logTicks(low, high, axis.log, most) : model.linearTicks(low, high, most);
    return ticks.map(([value, words]) => [value, axis.text?.(value) ?? words]);
  }

  /* more: {log, at, text}, of a logarithmic axis and of one with ticks or words of its own. */
  const axis = (noun, unit, caption, digits, range, more) => ({
    noun,
    unit,
    caption,
    digits,
    range,
    ...more,
  });

  /* A range from one power of ten to another, with all values in it. */
  const decades = (values) => [
    10 ** Math.floor(Math.log10(Math.min(...values))),
    10 ** Math.ceil(Math.log10(Math.max(...values))),
  ];

  /* A slider at a point of the plot. */
  const handle = (entry) =>
    element("div", {
      class: "lines-handle",
      role: "slider",
      tabindex: 0,
      "data-own-keys": true,
      onkeydown: (event) => {
        const steps = Elements.keySteps(event);
        if (steps) entry.now.step(steps);
      },
    });

  const dotsOf = ({ dot = "", color, xs, ys }, at) =>
    xs.map((x, i) => {
      const [cx, cy] = at(x, ys[i]);
      return svg("circle", { class: `lines-dot ${dot}`, style: `--line: var(--${color})`, cx, cy, r: 3.5 });
    });

  class Plot {
    constructor() {
      this.picture = svg("svg", { role: "img" });
      this.pad = element("div", { class: "lines-pad", hidden: true });
      this.frame = element("div", { class: "lines-frame" }, this.picture, this.pad);
      this.node = element("div", { class: "lines" }, this.frame);
      this.cursor = new window.ExplorableCursor(this.frame);
      this.handles = [];
      for (const type of ["pointerdown", "pointermove"]) {
        this.pad.addEventListener(type, (event) => this.drag(event));
      }
      new ResizeObserver(() => {
        this.measure();
        if (this.view) this.draw();
      }).observe(this.frame);
    }

    measure() {
      this.width = Math.max(240, this.frame.clientWidth);
      this.height = this.frame.clientHeight;
    }

    drag(event) {
      if (event.type === "pointerdown") this.pad.setPointerCapture(event.pointerId);
      else if (!this.pad.hasPointerCapture(event.pointerId)) return;
      const box = this.pad.getBoundingClientRect(), { x, y } = this.scales;
      const share = (value) => Math.min(1, Math.max(0, value));
      this.view.drag(
        x.from(share((event.clientX - box.left) / box.width)),
        y.from(share(1 - (event.clientY - box.top) / box.height)),
      );
    }

    /* Shows a view: {x, y} axes; lines, [{id, name, css, color, xs, ys}]; dots, [{dot, color, xs,
       ys}], with the CSS class of hollow ones in `dot`; said, its description in words; marks(at,
       ends), marks beside the lines, with at(x, y) in px. If a reader may drag: drag(x, y), and
       handles, [{x, y, aria, step}], where aria has the label and values of a slider. moving(share)
       is called at every frame. */
    show(view, { glide = true, moving = () => {} } = {}) {
      const scales = { x: scaleOf(view.x), y: scaleOf(view.y) };
      const before = this.shares ?? {};
      const after = Object.fromEntries(
        view.lines.map(({ id, xs, ys }) => [id, xs.map((x, i) => [scales.x.to(x), scales.y.to(ys[i])])]),
      );
      Object.assign(this, { view, scales });
      cancelAnimationFrame(this.timer);
      const begin = performance.now();
      const frame = (now) => {
        const t = Stage.calm || !glide ? 1 : Math.min(1, Math.max(0, now - begin) / MILLISECONDS);
        const share = eased(t);
        this.gliding = t < 1;
        this.shares = Stage.mapped(after, (points, id) => {
          const old = before[id]?.length === points.length ? before[id] : points;
          return points.map((point, i) =>
            point.map((to, axis) => old[i][axis] + share * (to - old[i][axis]))
          );
        });
        if (this.gliding && now > begin) this.trace();
        else this.draw();
        moving(share);
        if (t < 1) this.timer = requestAnimationFrame(frame);
      };
      frame(begin);
    }

    /* Redraws the lines only, between two states. */
    trace() {
      for (const line of this.traced ?? []) {
        line.setAttribute("d", Stage.path(this.shares[line.dataset.line].map(this.place)));
      }
    }

    draw() {
      if (!this.width) return; // drawn when it is laid out
      const { view, width, height, scales: { x, y } } = this;
      const w = width - LEFT - RIGHT, h = height - TOP - BOTTOM;
      this.place = ([across, up]) => [LEFT + across * w, TOP + (1 - up) * h];
      const at = (one, other) => this.place([x.to(one), y.to(other)]);
      const text = (attributes, words) => svg("text", { class: "lines-tick", ...attributes }, words);
      this.traced = view.lines.map(({ id, css = "", color }) =>
        svg("path", { class: `lines-line ${css}`, style: `--line: var(--${color})`, "data-line": id })
      );
      this.trace();
      this.picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
      this.picture.setAttribute("aria-label", view.said);
      this.picture.replaceChildren(
        text({ x: 0, y: 12 }, view.y.caption),
        text({ x: width, y: height - 4, "text-anchor": "end" }, view.x.caption),
        ...ticksOf(y, h / (view.y.log ? 30 : 44)).flatMap(([value, words]) => {
          const [, up] = at(x.low, value);
          return [
            svg("path", { class: "lines-grid", d: `M${LEFT} ${up}H${width - RIGHT}` }),
            text({ x: LEFT - 8, y: up + 4, "text-anchor": "end" }, words),
          ];
        }),
        ...ticksOf(x, w / 70).map(([value, words]) =>
          text({ x: at(value, y.low)[0], y: TOP + h + 17, "text-anchor": "middle" }, words)
        ),
        ...this.traced,
        ...(this.gliding ? [] : [
          ...(view.dots ?? []).flatMap((one) => dotsOf(one, at)),
          ...view.marks(at, { width, height, right: LEFT + w, top: TOP, bottom: TOP + h }),
        ]),
      );
      const box = { left: LEFT, top: TOP, width: w, height: h };
      for (const side in box) this.pad.style[side] = `${box[side]}px`;
      this.placeHandles(at);
      this.placeCursor({ ...box, right: RIGHT, x, y });
    }

    placeHandles(at) {
      const wanted = this.view.handles ?? [];
      this.pad.hidden = !wanted.length;
      while (this.handles.length > wanted.length) this.handles.pop().node.remove();
      wanted.forEach((now, i) => {
        const entry = this.handles[i] ??= {};
        entry.now = now;
        if (!entry.node) this.frame.append(entry.node = handle(entry));
        const [left, top] = at(now.x, now.y);
        Object.assign(entry.node.style, { left: `${left}px`, top: `${top}px` });
        for (const [name, value] of Object.entries(now.aria)) {
          entry.node.setAttribute(`aria-${name}`, value);
        }
      });
    }

    placeCursor(geometry) {
      const { view, cursor } = this;
      const named = view.lines.filter(({ name }) => name);
      cursor.element.hidden = this.gliding || !this.pad.hidden || !named.length;
      if (cursor.element.hidden) return cursor.hide();
      const traces = named.map(({ name, color, xs, ys, ended }) => ({
        curve: { name, color, role: "series" },
        x: xs,
        y: ys,
        ended,
      }));
      cursor.place({ mark: view.mark ?? "line" }, { x: view.x, y: view.y, traces }, geometry, null);
    }
  }

  return { Plot, axis, decades };
})();
