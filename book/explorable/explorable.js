/* Makes the charts of a page interactive: controls, settings in the URL's hash, tables, CSV, and
   plotly, which is loaded once and only when a figure is near. Classic scripts without a build
   step, so that the book opens from file://. explorable-elements.js, -model.js, -geometry.js,
   -draw.js, -cursor.js and figure-view.js come first. In a notebook the same scripts are part of a
   module, without an address or hash: notebook.js adopts the figures there. */
(function () {
  "use strict";
  const model = window.ExplorableModel;
  const script = document.currentScript?.src;
  const { element, keepHeight, load, save } = Elements;
  const hash = window.FigureView || { listen() {}, write() {} };
  const NEAR = 600; // px from the screen at which a figure is drawn
  const LIMITS = new Set(["ceiling", "computer"]);
  const figures = [];
  let plotly = null;

  const loadPlotly = async (address) =>
    window.Plotly ?? await (plotly ||= load(address || new URL("plotly-basic.min.js", script).href));

  class Figure {
    constructor(figure) {
      const find = (selector) => figure.querySelector(selector);
      this.element = figure;
      this.near = false;
      this.spec = model.decode(JSON.parse(find('script[type="application/json"]').textContent));
      this.state = model.defaults(this.spec);
      this.frame = find(".explorable-frame");
      this.plot = find(".explorable-plot");
      this.empty = find(".explorable-empty");
      this.table = find(".explorable-data");
      this.crossing = find(".explorable-crossing");
      this.folded = find(".explorable-more .explorable-chosen");
      const named = ({ name }) => [name, find(`[data-control="${CSS.escape(name)}"]`)];
      this.controls = new Map(this.spec.controls.map(named));
      this.bind();
      keepHeight(figure);
    }

    bind() {
      for (const control of this.spec.controls) {
        this.controls.get(control.name).addEventListener(
          "input",
          () => this.choose(control, this.read(control)),
        );
      }
      this.table.addEventListener("toggle", () => this.table.open && this.fillTable());
      const button = this.element.querySelector(".explorable-csv");
      button.hidden = false;
      button.addEventListener("click", () => save(model.csv(this.spec), `${this.spec.id}.csv`));
      if (this.crossing) {
        [this.slider, this.number] = this.crossing.querySelectorAll("input");
        this.slider.addEventListener("input", () => this.chooseLevel(Number(this.slider.value)));
        this.number.addEventListener(
          "change",
          () => this.chooseLevel(this.number.value === "" ? null : Number(this.number.value)),
        );
      }
    }

    read({ name, kind }) {
      const element = this.controls.get(name);
      if (kind === "select") return element.querySelector("select").value;
      const checked = [...element.querySelectorAll("input:checked")].map((input) => input.value);
      return kind === "check" ? checked : checked[0];
    }

    write({ name, kind }) {
      const element = this.controls.get(name), value = this.state[name];
      if (kind === "select") element.querySelector("select").value = value;
      else {
        for (const input of element.querySelectorAll("input")) {
          input.checked = [value].flat().includes(input.value);
          if (input.checked) input.closest(".explorable-rest")?.toggleAttribute("open", true);
        }
      }
    }

    choose(control, value) {
      this.set({ [control.name]: value });
      hash.write();
    }

    chooseLevel(level) {
      const digits = this.spec.axes.y.find(({ column }) => column === this.spec.crossing.column).digits;
      this.set({ level: level === null ? null : Number(level.toPrecision(digits)) });
      hash.write();
    }

    set(changes) {
      Object.assign(this.state, changes);
      this.update();
    }

    update() {
      this.view = model.resolve(this.spec, this.state);
      for (const control of this.spec.controls) this.write(control);
      this.markUnmeasured();
      if (this.folded) {
        const inside = this.spec.controls.filter(({ name }) =>
          this.controls.get(name).closest(".explorable-more")
        );
        this.folded.textContent = inside.map((control) => this.chosen(control)).join(" · ");
      }
      this.sayEmpty();
      if (this.crossing) this.answer();
      if (this.table.open) this.fillTable();
      if (!this.resized) return;
      // After the next frame, in which the pressed control shows its setting.
      cancelAnimationFrame(this.coming);
      this.coming = requestAnimationFrame(() => setTimeout(() => this.draw()));
    }

    /* A control's setting in words, for readers who do not see it: "Seed 0", "Models all". */
    chosen({ name, label, kind, options }) {
      const value = [this.state[name]].flat();
      const all = kind === "check" && value.length === options.length;
      const words = options.filter(([option]) => value.includes(option)).map(([, words]) => words);
      return `${label} ${all ? "all" : words.join(", ") || "none"}`;
    }

    markUnmeasured() {
      for (const [name, values] of Object.entries(this.view.unmeasured)) {
        for (const input of this.controls.get(name).querySelectorAll("input")) {
          const missing = values.includes(input.value);
          const label = input.closest("label");
          label.toggleAttribute("data-unmeasured", missing);
          label.querySelector(".figure-hidden").textContent = missing ? " (not measured yet)" : "";
        }
      }
    }

    sayEmpty() {
      const { empty } = this.view;
      const chosen = this.spec.controls.filter(({ kind, axis }) => kind !== "check" && !axis)
        .map((control) => this.chosen(control));
      this.empty.textContent = empty === "unmeasured"
        ? `Not measured yet: ${chosen.join(", ")}`
        : "Nothing is selected";
      this.empty.hidden = !empty;
      this.plot.style.visibility = empty ? "hidden" : "";
      if (this.cursor) this.cursor.element.hidden = Boolean(empty);
      if (empty) this.cursor?.hide();
    }

    answer() {
      const { crossing, axes } = this.spec;
      const { level, rows, sentence } = model.crossings(this.spec, this.view, this.state);
      this.level = level;
      this.crossing.hidden = level === null;
      if (level === null) return;
      const ends = rows.map(({ curve }) => model.extent(curve.columns[crossing.column]));
      const shown = axes.y.find(({ column }) => column === crossing.column);
      const [low, high] = shown.range || [-Infinity, Infinity];
      this.slider.min = Math.max(low, Math.min(...ends.map(([end]) => end)));
      this.slider.max = Math.min(high, Math.max(...ends.map(([, end]) => end)));
      this.slider.value = level;
      this.slider.setAttribute("aria-valuetext", model.quantity(level, shown));
      if (document.activeElement !== this.number) this.number.value = level;
      const [list, words] = this.crossing.querySelector(".explorable-answer").children;
      list.replaceChildren(
        ...rows.map(({ curve: { name, color }, text }) =>
          element("li", {}, element("b", { style: `color: var(--${color}-text)` }, name), ` ${text}`)
        ),
      );
      words.textContent = sentence;
    }

    fillTable() {
      const title = (scope) => (text) => element("th", { scope }, text);
      const { head, rows } = model.table(this.view);
      const line = ([name, ...cells]) =>
        element("tr", {}, title("row")(name), cells.map((text) => element("td", {}, text)));
      this.table.querySelector(".explorable-scroll").replaceChildren(
        element(
          "table",
          {},
          element("thead", {}, element("tr", {}, head.map(title("col")))),
          element("tbody", {}, rows.map(line)),
        ),
      );
    }

    /* Puts curves measured in this browser beside the stored ones, in place of earlier ones. */
    join(curves) {
      this.spec.curves = [...this.spec.curves.filter(({ role }) => role !== "browser"), ...curves];
      this.update();
    }

    draw() {
      if (this.view.empty || !this.frame.clientWidth) return;
      if (!this.drawn) this.replaceStill();
      const leveled = this.crossing && this.view.y.column === this.spec.crossing.column;
      const level = leveled ? this.level : null;
      const geometry = window.ExplorableDraw.draw(this.drawn, this.frame, this.spec, this.view, level);
      this.element.toggleAttribute("data-unlabelled", geometry.unlabelled);
      const limits = this.element.querySelector(".explorable-limits");
      if (limits) limits.hidden = !this.view.traces.some(({ curve }) => LIMITS.has(curve.role));
      this.names.replaceChildren(...window.ExplorableDraw.unnamed(this.spec, this.view, geometry));
      this.cursor.place(this.spec, this.view, geometry, level);
    }

    replaceStill() {
      this.drawn = element("div");
      this.plot.replaceChildren(this.drawn);
      this.cursor = new window.ExplorableCursor(this.frame);
      this.names = element("ul", { class: "explorable-names" });
      this.frame.before(this.names);
    }

    /* Draws the figure with plotly; until then the still picture shows the same. */
    wake(address) {
      this.woken ||= loadPlotly(address).then(() => {
        if (this.resized) return;
        this.resized = new ResizeObserver(() => requestAnimationFrame(() => this.draw()));
        this.resized.observe(this.frame);
      }, (error) => console.error(error.message));
    }
  }

  /* A value of the hash, if this control has it. */
  function allowed(control, value, otherwise) {
    const values = control.options.map(([option]) => option);
    if (control.kind === "check") return values.filter((option) => [value].flat().includes(option));
    return values.includes(value) ? value : otherwise;
  }

  /* {headline: "x=seconds&context=4096"}: only settings that differ from the default. */
  function changedSettings() {
    return Object.fromEntries(figures.map(({ spec, state }) => {
      const usual = model.defaults(spec);
      const changed = Object.keys(usual).filter((name) => String(state[name]) !== String(usual[name]));
      const words = (name) => `${name}=${[state[name]].flat().map(encodeURIComponent).join(",")}`;
      return [spec.id, changed.map(words).join("&")];
    }));
  }

  /* Applies the settings of a figure in the URL or in a link of the text to its defaults. */
  function apply(id, settings) {
    const figure = figures.find(({ spec }) => spec.id === id);
    if (!figure) return null;
    const state = model.defaults(figure.spec);
    for (const [name, values] of settings) {
      const control = figure.spec.controls.find((one) => one.name === name);
      if (control) state[name] = allowed(control, control.kind === "check" ? values : values[0], state[name]);
      else if (name === "level" && figure.crossing && Number.isFinite(Number(values[0]))) {
        state.level = Number(values[0]);
      }
    }
    figure.element.closest(".explorable-fold")?.toggleAttribute("open", true);
    figure.set(state);
    figure.wake();
    return figure.element;
  }

  /* A figure is drawn when a reader touches it, or moves on a page where it is near. Readers of the
     first screen alone have the still picture and load no drawing library. */
  function watchReader() {
    const moves = ["scroll", "pointermove", "pointerdown", "keydown"];
    let moved = false;
    const wakeNear = () => figures.filter(({ near }) => near).forEach((figure) => figure.wake());
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        figures.find(({ element }) => element === entry.target).near = entry.isIntersecting;
      }
      if (moved) wakeNear();
    }, { rootMargin: `${NEAR}px 0px` });
    const move = ({ type, movementX, movementY }) => {
      // A page that appears under a resting mouse gets a pointermove without any movement.
      if (type === "pointermove" && !movementX && !movementY) return;
      moved = true;
      for (const one of moves) removeEventListener(one, move);
      wakeNear();
    };
    for (const type of moves) addEventListener(type, move, { passive: true });
    for (const figure of figures) {
      watch.observe(figure.element);
      for (const type of ["focusin", "input"]) figure.element.addEventListener(type, () => figure.wake());
    }
  }

  function adopt(element) {
    const figure = new Figure(element);
    figure.update();
    return figure;
  }

  const release = (figure) => figure.resized?.disconnect();

  function start() {
    for (const element of document.querySelectorAll("figure.explorable")) {
      if (document.querySelectorAll(`#${element.id}`).length > 1) {
        console.error(`Two elements have the id ${element.id}: a heading and a figure?`);
      }
      figures.push(adopt(element));
    }
    if (!figures.length) return;
    dispatchEvent(new Event("figures-ready"));
    hash.listen(apply, changedSettings);
    watchReader();
    // A drawing keeps the colours that it was drawn in. Paper is white in every theme.
    const redraw = () => figures.forEach((figure) => figure.drawn && figure.draw());
    new MutationObserver(redraw).observe(document.documentElement, {
      attributes: true,
      attributeFilter: ["data-theme"],
    });
    matchMedia("print").addEventListener("change", redraw);
  }

  const join = (id, curves) => figures.find(({ spec }) => spec.id === id)?.join(curves);

  window.Explorables = { adopt, release, join };
  if (!script) return;
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
