/* Reading values off a plot, by pointer, touch or arrow keys: a cursor, and a box with the values
   of all curves at one x. It is a slider over the plot, so a screen reader speaks the same words
   that the box shows. */
(function () {
  "use strict";
  const model = window.ExplorableModel;
  const { element, keySteps } = Elements;
  const STEPS = 100; // across a plot of lines, by arrow key
  const MOST_ROWS = 12;
  const BESIDE = 12; // px from the cursor to its box
  const ROOMY = 560; // px of figure from which the box is beside the cursor, not below the plot

  class Cursor {
    constructor(frame) {
      this.level = element("div", { class: "explorable-level" });
      this.line = element("div", { class: "explorable-rule" });
      this.dots = element("div", { class: "explorable-dots" });
      this.element = element(
        "div",
        {
          class: "explorable-cursor",
          tabindex: 0,
          role: "slider",
          onpointermove: (event) => this.point(event),
          onpointerdown: (event) => this.point(event),
          // A finger covers what it points at, so the box stays until a tap elsewhere.
          onpointerleave: ({ pointerType }) => pointerType === "mouse" && this.hide(),
          onblur: () => this.hide(),
          onfocus: () => this.element.matches(":focus-visible") && this.moveTo(this.index),
          onkeydown: (event) => this.key(event),
        },
        this.level,
        this.line,
        this.dots,
      );
      this.frame = frame;
      frame.append(this.element);
      // Hidden from screen readers, since the slider says the same.
      this.box = element("div", { class: "explorable-values", "aria-hidden": "true" });
      frame.parentElement.append(this.box);
      this.index = 0;
      this.hide();
    }

    /* `view` as drawn in geometry `g`; `levelValue` is the y of a level line, or null. */
    place(spec, view, g, levelValue) {
      Object.assign(this, { spec, view, g });
      const along = g.y.category ? "y" : "x";
      this.scale = g[along];
      this.along = along;
      this.stops = this.stopsAlong();
      this.index = Math.min(this.index, this.stops.length - 1);
      Object.assign(this.element.style, {
        left: `${g.left}px`,
        top: `${g.top}px`,
        width: `${g.width}px`,
        height: `${g.height}px`,
      });
      const set = (name, value) => this.element.setAttribute(name, value);
      set("aria-label", `Read values along ${this.scale.axis.noun}`);
      set("aria-valuemin", 0);
      set("aria-valuemax", this.stops.length - 1);
      this.describe(this.stops[this.index], this.index);
      const share = levelValue === null ? -1 : g.y.to(levelValue);
      this.level.hidden = share < 0 || share > 1;
      this.level.style.top = `${(1 - share) * g.height}px`;
      if (!this.box.hidden) this.show(this.stops[this.index]);
    }

    /* Positions of the cursor: anywhere on lines, only measured values on points and bars. */
    stopsAlong() {
      const { scale } = this;
      if (scale.category) return scale.names;
      const values = this.view.traces.flatMap((trace) => trace.x);
      if (this.spec.mark !== "line") {
        return [...new Set(values)].sort((a, b) => a - b).filter((x) => scale.to(x) >= 0 && scale.to(x) <= 1);
      }
      const [first, last] = model.extent(values).map((x) => Math.min(1, Math.max(0, scale.to(x))));
      // There is no update 12.3, but a few whole hours still have fractions between them.
      const counts = values.every(Number.isInteger) && scale.high - scale.low > 2 * STEPS;
      return Array.from({ length: STEPS + 1 }, (_, i) => {
        const x = scale.from(first + (last - first) * i / STEPS);
        return counts ? Math.round(x) : x;
      });
    }

    point(event) {
      const box = this.element.getBoundingClientRect();
      const share = this.along === "x"
        ? (event.clientX - box.left) / box.width
        : 1 - (event.clientY - box.top) / box.height;
      const distance = (stop) => Math.abs(this.scale.to(stop) - share);
      const nearest = this.stops.reduce(
        (best, stop, i) => (distance(stop) < distance(this.stops[best]) ? i : best),
        0,
      );
      this.index = nearest;
      this.show(this.stops[nearest]);
    }

    key(event) {
      const last = this.stops.length - 1, steps = keySteps(event, Math.ceil(last / 10));
      if (event.key === "Escape") this.hide();
      if (steps) this.moveTo(Math.min(last, Math.max(0, this.index + steps)));
    }

    moveTo(index) {
      this.index = index;
      this.show(this.stops[index]);
    }

    hide() {
      this.line.hidden = this.box.hidden = this.dots.hidden = true;
    }

    rowsAt(stop) {
      const { x, y } = this.g, across = this.along === "x" ? "y" : "x";
      const rows = [];
      for (const trace of this.view.traces) {
        const lined = this.along === "x" && (this.spec.mark === "line" || trace.curve.role === "ceiling");
        let value = null;
        if (lined) {
          const inside = model.interpolate(trace.x.map(x.to), trace.y.map(y.to), x.to(stop));
          value = inside === null ? null : y.from(inside);
        } else {
          const i = trace[this.along].indexOf(stop);
          if (i >= 0) value = trace[across][i];
        }
        const done = trace.ended && value === null && x.to(stop) > x.to(trace.x.at(-1));
        if (done) rows.push({ curve: trace.curve, words: trace.ended, at: y.to(trace.y.at(-1)) });
        else if (value !== null) rows.push({ curve: trace.curve, value, at: this.g[across].to(value) });
      }
      return rows.sort((a, b) => b.at - a.at);
    }

    describe(stop, index) {
      const across = this.g[this.along === "x" ? "y" : "x"].axis;
      const rows = this.rowsAt(stop);
      const words = rows.map(({ curve, value, words }) =>
        `${curve.name} ${words ?? model.quantity(value, across)}`
      ).join("; ");
      this.element.setAttribute("aria-valuenow", index);
      this.element.setAttribute(
        "aria-valuetext",
        `${model.quantity(stop, this.scale.axis)}: ${words || "no value"}`,
      );
      return rows;
    }

    show(stop) {
      const rows = this.describe(stop, this.index);
      const share = this.scale.to(stop), across = this.g[this.along === "x" ? "y" : "x"].axis;
      this.line.hidden = this.box.hidden = this.dots.hidden = false;
      const horizontal = this.along === "y";
      this.line.className = `explorable-rule${horizontal ? " explorable-rule-across" : ""}`;
      this.line.style[horizontal ? "top" : "left"] = `${(horizontal ? 1 - share : share) * 100}%`;
      this.line.style[horizontal ? "left" : "top"] = "0";
      this.dots.replaceChildren(
        ...rows.filter(({ at, words }) => !words && at >= 0 && at <= 1).map(({ curve, at }) => {
          const [x, y] = horizontal ? [at, share] : [share, at];
          const style = `background: var(--${curve.color}); left: ${100 * x}%; top: ${100 * (1 - y)}%`;
          return element("i", { style });
        }),
      );
      const beside = this.frame.clientWidth >= ROOMY;
      this.box.classList.toggle("explorable-values-below", !beside);
      this.fill(stop, rows, across, beside);
      const [left, top] = beside
        ? this.placeBeside(horizontal ? 0 : share * this.g.width)
        : this.placeBelow();
      const { offsetLeft, offsetTop, offsetWidth } = this.frame;
      Object.assign(this.box.style, {
        left: `${offsetLeft + left}px`,
        top: `${offsetTop + top}px`,
        width: beside ? "" : `${offsetWidth}px`,
      });
    }

    /* On the side of the cursor with more room, and inside the figure. */
    placeBeside(x) {
      const { left, top, right, width } = this.g, own = this.box.offsetWidth;
      const beside = x > width / 2 ? x - BESIDE - own : x + BESIDE;
      const inside = this.along === "y" ? width - own : Math.min(beside, width + right - own);
      return [Math.max(0, left + inside), top];
    }

    /* Below the plot, over what follows, so that nothing moves. If the screen ends there, above the
       plot; in a pinned figure, above its buttons. */
    placeBelow() {
      const figure = this.box.parentElement, head = parseFloat(getComputedStyle(figure).scrollMarginTop);
      const own = this.box.offsetHeight, { top, bottom } = this.frame.getBoundingClientRect();
      const over = figure.matches(".figure-pinned") ? this.frame.offsetTop : 0;
      const above = bottom + own > innerHeight && top - over - own > head;
      return [0, above ? -over - own : this.frame.offsetHeight];
    }

    /* Below the plot the unit appears once, and rows are short enough for two in a line. */
    fill(stop, rows, across, beside) {
      const { noun, unit } = across, what = unit ? `${noun} (${unit})` : noun;
      const at = model.quantity(stop, this.scale.axis);
      const number = (value) =>
        beside ? model.quantity(value, across) : model.formatNumber(value, across.digits);
      const lines = rows.slice(0, MOST_ROWS).map(({ curve: { name, color }, value, words }) =>
        element(
          "span",
          {},
          element("span", { style: `color: var(--${color}-text)` }, name),
          element("b", {}, words ?? number(value)),
        )
      );
      const left = rows.length - MOST_ROWS;
      if (left > 0) lines.push(element("span", {}, `and ${left} more`));
      this.box.replaceChildren(element("strong", {}, beside ? at : `${at}: ${what}`), ...lines);
    }
  }

  window.ExplorableCursor = Cursor;
})();
