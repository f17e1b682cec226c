"use strict";

/* Shared by the stages: mounting, a row of buttons, keys, a line that is also spoken. A page may
   have several stages, so this file may run more than once. */

window.Stage ??= (() => {
  const { button, element, grouped, keepHeight, svg } = Elements;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const SETTLED_MS = 200; // browsers limit the number of changes of a URL in a row
  let count = 0;

  /* Calls build(stage, part) for each place of the page with this `name`. It returns the settings
     for links in the text, {name: [setter, default as text]}. A setter returns false for a text
     that it cannot show; its `now()` is the present setting as text, for the URL. */
  function mount(name, build) {
    for (const root of document.querySelectorAll(`[data-stage="${name}"]`)) {
      if (root.dataset.mounted) continue;
      root.dataset.mounted = "";
      const views = build(root.querySelector(".stage"), root.dataset.part) ?? {};
      keepHeight(root.querySelector(".stage"));
      const settingsText = () =>
        Object.entries(views)
          .filter(([, [set, first]]) => set.now() !== String(first))
          .map(([key, [set]]) => `${key}=${encodeURIComponent(set.now())}`).join("&");
      const asBuilt = settingsText(); // some stages begin halfway, while links show the end
      window.FigureView.listen((id, settings) => {
        if (id !== root.id) return null;
        const asked = Object.fromEntries(settings.map(([key, [value]]) => [key, value]));
        for (const key of Object.keys(asked)) {
          if (!views[key]) console.error(`${id}: nothing is called ${key}`);
        }
        for (const [key, [set, first]] of Object.entries(views)) {
          if (set(asked[key] ?? String(first)) === false) {
            console.error(`${id}: cannot show ${key}=${asked[key]}`);
          }
        }
        return root;
      }, (whole) => ({ [root.id]: !whole && settingsText() === asBuilt ? "" : settingsText() }));
      let timer = 0;
      for (const type of ["click", "input", "keydown"]) {
        root.addEventListener(type, () => {
          clearTimeout(timer);
          timer = setTimeout(window.FigureView.write, SETTLED_MS);
        });
      }
    }
  }

  /* `mount` for a stage that shows data of its page, element #<name>-data: calls
     build(stage, data). */
  const mountStored = (name, build) =>
    mount(name, (stage) => {
      const source = document.getElementById(`${name}-data`);
      if (source) return build(stage, JSON.parse(source.textContent));
      stage.append(element("p", { class: "film-quiet" }, "Nothing is stored for this yet."));
    });

  /* [[value, label]] of a choice's options: {value: label}, {value: {name: label}}, or a list of
     values that are labels too. */
  const optionsOf = (options) =>
    Array.isArray(options)
      ? options.map((one) => [String(one), one])
      : Object.entries(options).map(([value, one]) => [value, one.name ?? one]);

  /* A choice of a few values as radio buttons. */
  function radios(label, options, chosen, change) {
    const name = `stage-${count++}`;
    const choices = optionsOf(options).map(([value, text]) =>
      element(
        "label",
        { class: "figure-choice" },
        element("input", {
          type: "radio",
          name,
          value,
          checked: value === String(chosen),
          onchange: () => change(value),
        }),
        element("span", {}, text),
      )
    );
    return element(
      "fieldset",
      { class: "figure-control figure-radio" },
      element("legend", { class: "figure-label" }, label),
      element("span", { class: "figure-choices" }, choices),
    );
  }

  /* Setters for `mount`. They use the controls as a reader would, so that these show the value. */
  const setter = (set, now) => Object.assign(set, { now });
  const pick = (fieldset) =>
    setter((value) => {
      const input = [...fieldset.querySelectorAll("input")].find((one) => one.value === value);
      input?.click();
      return Boolean(input);
    }, () => fieldset.querySelector("input:checked").value);
  const slide = (control, list) =>
    setter((value) => {
      const input = control.querySelector("input"), i = list.indexOf(Number(value));
      if (i >= 0) {
        input.value = i;
        input.dispatchEvent(new Event("input"));
      }
      return i >= 0;
    }, () => String(list[control.querySelector("input").value]));
  const entry = (control) => {
    const list = control.querySelector("select");
    return setter((value) => {
      const known = [...list.options].some((one) => one.value === value);
      if (known) {
        list.value = value;
        list.dispatchEvent(new Event("change"));
      }
      return known;
    }, () => list.value);
  };
  const whole = (show, now, from, to) =>
    setter((text) => {
      const n = Number(text);
      return Number.isInteger(n) && n >= from && n <= to ? show(n) : false;
    }, () => String(now()));

  const buttons = (label, ...nodes) =>
    element("div", { class: "stage-buttons", role: "group", "aria-label": label }, nodes);

  /* A button that acts, and passes the focus on to the button that takes its place. */
  const swap = (text, act, other) =>
    button(text, () => {
      act();
      other().focus();
    });

  /* A field for text, and the field with its label. */
  function field(id, label, value, attributes) {
    const input = element("input", { type: "text", id, value, autocomplete: "off", ...attributes });
    const name = element("label", { class: "figure-label", for: id }, label);
    return [input, element("div", { class: "figure-control" }, name, input)];
  }

  /* A label with a number below it: {name, value, group}, the two elements and both. */
  function fact(label) {
    const name = element("span", {}, label), value = element("b");
    return { name, value, group: element("p", {}, name, value) };
  }

  /* Less used parts, folded at first. words: what they are. */
  const more = (words, ...parts) =>
    element(
      "details",
      { class: "stage-more" },
      element("summary", {}, `More: ${words}`),
      element("div", { class: "stage-row film-settings" }, parts),
    );

  /* Numbers as squares, column by column; shade(number): how dark. pitch: from column to column. */
  const squares = (columns, shade, { x = 0, y = 0, side, pitch = side }) =>
    columns.flatMap((column, i) =>
      column.map((value, j) =>
        svg("rect", {
          x: x + i * pitch,
          y: y + j * side,
          width: side - 1,
          height: side - 1,
          "fill-opacity": shade(value).toFixed(2),
        })
      )
    );

  /* A line through points in px. */
  const path = (points) =>
    points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

  /* A slider over a list of numbers, with its value beside the label. Its `put` moves it to a place
     of the list and calls no `change`. */
  function slider(id, label, list, chosen, change) {
    const output = element("output", { for: id });
    const act = () => {
      put(input.value);
      change(list[input.value]);
    };
    const input = element("input", { type: "range", id, min: 0, max: list.length - 1, oninput: act });
    function put(i) {
      input.value = i;
      output.textContent = grouped(list[i]);
      input.setAttribute("aria-valuetext", grouped(list[i]));
    }
    put(list.indexOf(chosen));
    // An output inside the label would become its target.
    const head = element("div", {}, element("label", { class: "figure-label", for: id }, label), " ", output);
    return Object.assign(element("div", { class: "figure-control stage-slider" }, head, input), { put });
  }

  /* A choice of many values. */
  function select(id, label, options, chosen, change) {
    const list = element(
      "select",
      { id, onchange: () => change(list.value) },
      optionsOf(options).map(([value, text]) =>
        element("option", { value, selected: value === String(chosen) }, text)
      ),
    );
    return element(
      "div",
      { class: "figure-control" },
      element("label", { class: "figure-label", for: id }, label),
      list,
    );
  }

  /* Back, Step, Play and Start over, for a picture that is a function of a step number; also by
     keys anywhere on the stage. length(): the last step. render(n) draws. say(n): the line that is
     shown and spoken. Returns {bar, line, show}: two nodes to insert, and show(n), which goes to a
     step. */
  function stepper(stage, { length, render, say, milliseconds = 700 }) {
    let step = 0, timer = 0;
    const line = element("p", { class: "stage-line", role: "status" });
    const back = button("Back", () => show(step - 1));
    const next = button("Step", () => show(step + 1));
    const play = button("Play", () => toggle());
    const over = button("Start over", () => show(0));
    const bar = buttons("Steps", back, next, calm.matches ? null : play, over);

    function stop() {
      clearInterval(timer);
      timer = 0;
      line.setAttribute("aria-live", "polite");
      play.textContent = "Play";
    }

    /* quietly: nothing is spoken, since the reader did not start it. */
    function start(quietly = false) {
      line.setAttribute("aria-live", quietly ? "off" : "polite");
      if (step >= length()) go(0);
      play.textContent = "Pause";
      timer = setInterval(() => (step < length() ? go(step + 1) : stop()), milliseconds);
    }

    function go(n) {
      step = Math.max(0, Math.min(n, length()));
      // Unlike `disabled`, this keeps the focus on the button.
      for (const [node, off] of [[back, step === 0], [over, step === 0], [next, step >= length()]]) {
        node.setAttribute("aria-disabled", off);
      }
      render(step);
      line.textContent = say(step);
    }

    function show(n) {
      stop();
      go(n);
    }

    const toggle = () => (timer ? stop() : start());
    // Except where a control uses the keys.
    stage.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.target.closest("input, select, [data-own-keys]")) return;
      const target = { ArrowLeft: step - 1, ArrowRight: step + 1, Home: 0, End: length() }[event.key];
      if (target === undefined) return;
      event.preventDefault();
      show(target);
    });
    return { bar, line, show, start, stop, toggle, playing: () => timer !== 0, step: () => step };
  }

  /* Sources of the numbers, folded: runs with links. */
  const provenance = (sources) =>
    element(
      "details",
      { class: "figure-provenance" },
      element("summary", {}, "Where the numbers come from"),
      element(
        "p",
        {},
        [
          ...new Set(
            sources.map(({ device, commit, date, command }) => [device, commit, date, command].join(" · ")),
          ),
        ].join("; "),
        sources.flatMap(({ href }) => [" · ", element("a", { href }, href.match(/([^/]*?)(\.json)?$/)[1])]),
      ),
    );

  /* An entry of a legend: marks of 22 by 10 in the colour --line, and their meaning. */
  const named = (words, marks, color = "currentColor") =>
    element(
      "li",
      { style: `--line: ${color}` },
      svg("svg", { viewBox: "0 0 22 10", "aria-hidden": "true" }, ...marks),
      words,
    );

  /* The same for a line. */
  const lined = (words, color, css = "") =>
    named(words, [svg("path", { class: `lines-line ${css}`, d: "M0 5H22" })], color);

  /* Repeatable numbers in [0, 1): Numerical Recipes' generator, 32 bits. */
  function random(seed) {
    let state = seed >>> 0;
    return () => {
      state = (Math.imul(1664525, state) + 1013904223) >>> 0;
      return state / 2 ** 32;
    };
  }

  /* {name: make(value, name)} of an object {name: value}. */
  const mapped = (object, make) =>
    Object.fromEntries(Object.entries(object).map(([name, value]) => [name, make(value, name)]));

  return {
    element,
    svg,
    mount,
    mountStored,
    radios,
    setter,
    pick,
    slider,
    slide,
    button,
    buttons,
    field,
    fact,
    more,
    path,
    squares,
    swap,
    select,
    entry,
    whole,
    stepper,
    provenance,
    named,
    lined,
    random,
    mapped,
    calm: calm.matches,
  };
})();
