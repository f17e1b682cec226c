"use strict";

/* The memory lab. Pairs of words are written one by one into the state of linear attention, and
   a cache keeps them all. One key is asked for: the columns show the weight of every stored value
   in the two answers, and the curve how many of the keys would be answered right. */

{
  const { element } = Stage;
  const { FIRST, Lab, percent, range } = MemoryLab;
  const { Curve, SIDES, StatePicture } = MemoryPictures;
  const MOST = 12; // pairs in a list
  const START = "cat hat, bee tin, bat egg, hog wax";
  const REST = "fox fig, cod oil, hen toy, owl gem, pig ink, yak cup, ant tea";
  const LISTS = {
    "Twelve keys": `${START}, emu pie, ${REST}`,
    "One key twice": `${START}, cat nut, ${REST}`,
  };
  const MAPS = {
    elu_plus_one: "elu + 1",
    relu: "relu",
    softplus: "softplus",
    exp: "exp",
    identity: "none, keys of length 1",
  };
  const WIDTHS = [4, 8, 16, 32], DECAYS = [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1];

  /* The columns: a pair each, the weight of its value in either answer, what the state answers. */
  class Columns {
    constructor(lab, choose) {
      this.lab = lab;
      this.columns = range(MOST).map((i) => {
        const key = element("b"), value = element("span");
        const button = element("button", { type: "button", onclick: () => choose(i) }, key, value);
        const bar = () => element("i"), number = () => element("span");
        return {
          key,
          value,
          button,
          cache: [bar(), number()],
          state: [bar(), number()],
          said: element("td"),
        };
      });
      const named = (css, text) =>
        element(
          "tr",
          {},
          element("th", { class: `memory-label ${css}`.trim(), scope: "rowgroup", colspan: MOST }, text),
        );
      const bars = (name) =>
        element(
          "tr",
          { class: SIDES[name] },
          this.columns.map((column) =>
            element("td", {}, element("div", { class: "memory-bar" }, column[name][0]), column[name][1])
          ),
        );
      this.labels = { cache: element("span"), state: element("span") };
      this.table = element(
        "table",
        { class: "memory-columns" },
        element(
          "tbody",
          {},
          named("", "Keys and their values. Press one to ask for it"),
          element("tr", {}, this.columns.map(({ button }) => element("td", {}, button))),
        ),
        element("tbody", {}, named(SIDES.cache, this.labels.cache), bars("cache")),
        element("tbody", {}, named(SIDES.state, this.labels.state), bars("state")),
        element(
          "tbody",
          {},
          named("", "What the state answers to each key"),
          element("tr", { class: "memory-said" }, this.columns.map(({ said }) => said)),
        ),
      );
    }

    /* A bar from 0, in a frame that ends at 0 and 1, or a half beyond where weights may be negative. */
    drawBar([bar, number], weight) {
      const room = Recall.normalized(this.lab.settings) ? 0 : 0.5;
      const at = (x) => (100 * (Math.max(-room, Math.min(1 + room, x)) + room)) / (1 + 2 * room);
      bar.style.bottom = `${at(Math.min(0, weight))}%`;
      bar.style.height = `${at(Math.max(0, weight)) - at(Math.min(0, weight))}%`;
      number.textContent = weight === null ? "\u00a0" : percent(weight);
    }

    draw(n, here, answer) {
      const { words, settings } = this.lab;
      this.columns.forEach(({ key, value, button, cache, state, said }, i) => {
        const written = i < n;
        [key.textContent, value.textContent] = words[i];
        button.title = words[i].join(" → ");
        button.setAttribute("aria-pressed", i === here);
        button.classList.toggle("memory-ahead", !written);
        for (const [name, cell] of [["cache", cache], ["state", state]]) {
          this.drawBar(cell, written ? answer[name].weights[i] : null);
          cell[0].parentElement.parentElement.classList.toggle("memory-asked", i === here);
        }
        const found = written && !this.lab.rewritten(i, n) ? this.lab.ask(i, n) : null,
          right = found?.state.said === found?.wanted;
        said.textContent = found ? (right ? "✓" : found.state.said) : "";
        said.title = found
          ? `${words[i][0]}: ${found.state.said}, ${right ? "right" : `not ${found.wanted}`}`
          : "";
        said.className = found && !right ? "memory-wrong" : "";
      });
      this.table.classList.toggle("memory-signed", !Recall.normalized(settings));
      const { width } = settings, numbers = width * width + (Recall.normalized(settings) ? width : 0);
      this.labels.cache.textContent = `Softmax, a cache of ${2 * width * n} numbers: weights in %`;
      this.labels.state.textContent = `Linear, a state of ${numbers} numbers: `
        + (Recall.normalized(settings)
          ? "weights in %"
          : "how much of each value its answer holds, in % (no normaliser: they need not add up to 100)");
    }
  }

  /* A pair of the reader's own: write(pair) takes it. */
  function ownPair(write) {
    const field = (label, value) =>
      element(
        "label",
        { class: "figure-control" },
        element("span", { class: "figure-label" }, label),
        element("input", {
          type: "text",
          value,
          maxlength: 6,
          size: 5,
          autocomplete: "off",
          autocapitalize: "off",
          spellcheck: "false",
        }),
      );
    const fields = [field("Key", "cat"), field("Value", "rye")];
    return element(
      "form",
      {
        class: "stage-row",
        onsubmit: (event) => {
          event.preventDefault();
          const pair = fields.map((one) => one.querySelector("input").value.trim().replace(/\s+/g, "-"));
          if (pair.every(Boolean)) write(pair);
        },
      },
      fields,
      element("button", { type: "submit" }, "Write"),
    );
  }

  /* What the reader sets: pairs(n), list(name), change({setting: value}). */
  function controls({ pairs, list, change }) {
    const sliders = {
      width: Stage.slider(
        "memory-width",
        "Width d",
        WIDTHS,
        FIRST.width,
        (value) => change({ width: value }),
      ),
      pairs: Stage.slider("memory-pairs", "Pairs written", range(MOST + 1), 8, pairs),
      decay: Stage.slider(
        "memory-decay",
        "Decay γ",
        DECAYS,
        FIRST.decay,
        (value) => change({ decay: value }),
      ),
    };
    const map = Stage.select(
      "memory-map",
      "Feature map φ",
      Object.values(MAPS),
      0,
      (i) => change({ map: Object.keys(MAPS)[i] }),
    );
    const rule = Stage.radios(
      "Writing",
      { add: "adds", delta: "delta rule" },
      "add",
      (value) => change({ delta: value === "delta" }),
    );
    const lists = Stage.select(
      "memory-list",
      "List",
      Object.keys(LISTS),
      0,
      (i) => list(Object.keys(LISTS)[i]),
    );
    return { sliders, map, rule, lists };
  }

  Stage.mount("memory", (stage) => {
    const lab = new Lab(),
      columns = new Columns(lab, choose),
      state = new StatePicture(lab),
      curve = new Curve(lab);
    const formula = element("p", { class: "memory-formula" });
    let before = null; // the step that was drawn last

    function render(n) {
      const here = lab.here(n), answer = n ? lab.ask(here, n) : null;
      columns.draw(n, here, answer);
      state.draw(n, here, answer);
      if (!Stage.calm && before !== null && n === before + 1) state.slide();
      curve.drawSoon(steps.step);
      Stage.put(sliders.pairs, range(MOST + 1), n);
      before = n;
    }

    function choose(i) {
      lab.asked = i;
      steps.show(Math.max(i + 1, steps.step()));
    }
    function write(words, settings, n = steps.step()) {
      lab.set(words, settings);
      state.lay();
      formula.textContent = lab.formula();
      before = null;
      steps.show(n);
    }
    function list(name) {
      lab.asked = 0;
      write(LISTS[name].split(", ").map((pair) => pair.split(" ")), {});
    }
    const change = (settings) => write(lab.words, settings);

    const steps = Stage.stepper({ length: () => MOST, render, say: (n) => lab.said(n), milliseconds: 900 });
    const { sliders, map, rule, lists } = controls({ pairs: (n) => steps.show(n), list, change });
    const form = ownPair((pair) => {
      const n = Math.min(steps.step(), MOST - 1);
      lab.asked = n;
      write([...lab.words.slice(0, n), pair, ...lab.words.slice(n)].slice(0, MOST), {}, n);
      steps.show(n + 1);
    });
    stage.append(
      element(
        "div",
        { class: "memory" },
        element("div", { class: "memory-asking" }, columns.table, steps.line, steps.bar),
        element("div", { class: "memory-picture" }, state.picture, formula),
        curve.frame,
      ),
      element("div", { class: "stage-row memory-settings" }, Object.values(sliders), map, rule, lists, form),
    );
    Stage.keys(stage, steps, () => MOST);
    list(Object.keys(LISTS)[0]);
    steps.show(8);
    new ResizeObserver(() => curve.drawSoon(steps.step)).observe(curve.frame);
    return {
      list: [Stage.entry(lists), 0],
      width: [Stage.slide(sliders.width, WIDTHS), FIRST.width],
      map: [Stage.entry(map, Object.keys(MAPS)), FIRST.map],
      decay: [Stage.slide(sliders.decay, DECAYS), FIRST.decay],
      rule: [Stage.pick(rule), "add"],
      pairs: [Stage.whole(steps.show, steps.step, 0, MOST), 8],
      ask: [
        Stage.whole((i) => (lab.asked = i - 1, steps.show(steps.step())), () => lab.asked + 1, 1, MOST),
        1,
      ],
    };
  });
}
