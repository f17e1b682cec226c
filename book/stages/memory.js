"use strict";

/* The memory lab. Pairs of words are written one by one into the state of linear attention, and
   into a cache. One key is asked for: the columns show the weight of the first values in the two
   answers, and below each, whether its own key would be answered right. Keys from trained models
   are in a file of the book, named by element #trained-keys, which loads when chosen. */

{
  const { element } = Stage;
  const { FIRST, Lab, percent, range } = MemoryLab;
  const { StatePicture } = MemoryPictures;
  const SHOWN = 12, MOST = 64; // pairs with a column; pairs in a list
  const START = "cat hat, bee tin, bat egg, hog wax";
  const REST = "fox fig, cod oil, hen toy, owl gem, pig ink, yak cup, ant tea, "
    + "dog pan, cow rug, ape pen, asp jar, doe box, eel bag, elk cap, ewe bed, gnu map, jay axe, "
    + "koi bow, lark can, lion car, mole net, moth fan, mule ham, orca jam, puma jug, ram lid, rat "
    + "log, ray mat, seal mop, slug mug, sow oar, stag pad, swan pin, tern pot, toad rod, tuna saw, "
    + "vole tap, wasp tie, wolf tub, worm urn, wren van, bear vat, boar web, bull wig, calf zip, "
    + "carp bun, clam ale, colt gas, crab gum, crow hay, deer ice, dove ivy, duck bell, flea book, "
    + "frog boot, gull comb, goat desk, hare drum, hawk fork";
  const LISTS = [
    { name: "64 keys", pairs: `${START}, emu pie, ${REST}` },
    { name: "One key twice", pairs: `${START}, cat nut, ${REST}` },
  ];
  const KEYS = {
    positive: "Random keys, all positive, look much alike: hardest for linear. Try the others.",
    signed: "Features of both signs, of length 1. No normaliser: weights need not add up to 100.",
    orthogonal: "Keys at right angles, as many as the state is wide. No normaliser.",
    trained: "Keys that a linear and a softmax model learned to write and read, 32 wide.",
  };
  const MAPS = { elu_plus_one: "elu + 1", relu: "relu", softplus: "softplus", exp: "exp" };
  const WIDTHS = [4, 8, 16, 32, 64], DECAYS = [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1];

  /* The columns, one for each pair: the weight of its value in both answers, and the state's
     answer. */
  class Columns {
    constructor(lab, choose) {
      this.lab = lab;
      this.columns = range(SHOWN).map((i) => {
        const key = element("b"), value = element("span");
        const button = element("button", { type: "button", onclick: () => choose(i) }, key, value);
        const bar = () => element("i"), number = () => element("span");
        return {
          key,
          value,
          button,
          cache: [bar(), number(), element("td")],
          state: [bar(), number(), element("td")],
        };
      });
      const cell = { class: "memory-label", scope: "rowgroup", colspan: SHOWN };
      const named = (...parts) => element("tr", {}, element("th", cell, ...parts));
      const side = (name, css) => {
        const one = { label: element("span"), right: element("b") };
        const bars = this.columns.map((column) =>
          element("td", {}, element("div", { class: "memory-bar" }, column[name][0]), column[name][1])
        );
        one.body = element(
          "tbody",
          { class: css },
          named(element("div", {}, one.label, one.right)),
          element("tr", { class: css }, bars),
          element("tr", { class: "memory-said" }, this.columns.map((column) => column[name][2])),
        );
        return one;
      };
      this.sides = { cache: side("cache", "memory-cache"), state: side("state", "memory-state") };
      this.keys = element("span");
      this.table = element(
        "table",
        { class: "memory-columns" },
        element(
          "tbody",
          {},
          named(this.keys),
          element("tr", {}, this.columns.map(({ button }) => element("td", {}, button))),
        ),
        this.sides.cache.body,
        this.sides.state.body,
        element("tbody", {}, named("✓ ✗: each key’s answer. Struck: a wrong one")),
      );
    }

    /* A bar from 0, in a frame from 0 to 1, or half a unit wider at both ends if weights may be
       negative. */
    drawBar([bar, number], weight) {
      const room = this.lab.normalized ? 0 : 0.5;
      const at = (x) => (100 * (Math.max(-room, Math.min(1 + room, x)) + room)) / (1 + 2 * room);
      bar.style.bottom = `${at(Math.min(0, weight))}%`;
      bar.style.height = `${at(Math.max(0, weight)) - at(Math.min(0, weight))}%`;
      number.textContent = weight === null ? "\u00a0" : percent(weight);
    }

    /* Whether a column's own key is answered right, and the state's answer if it is wrong. */
    drawSaid(cell, key, found, name) {
      const { right, said } = found?.[name] ?? {};
      cell.className = right ? "memory-right" : "";
      cell.title = found ? `${key}: ${said}, ${right ? "right" : `not ${found.wanted}`}` : "";
      cell.replaceChildren(
        found ? (right ? "✓" : "✗") : "",
        found && !right && name === "state" ? element("s", {}, said) : "",
      );
    }

    drawSide(name, told, label) {
      const { label: node, right } = this.sides[name];
      node.textContent = label;
      right.textContent = told.of ? `${told[name]} of ${told.of} right` : "";
    }

    draw(n, here, answer) {
      const { words, rules, normalized } = this.lab, told = this.lab.told(n);
      this.columns.forEach(({ key, value, button, cache, state }, i) => {
        const written = i < n;
        [key.textContent, value.textContent] = words[i];
        button.title = words[i].join(" → ");
        button.setAttribute("aria-pressed", i === here);
        button.classList.toggle("memory-ahead", !written);
        for (const [name, cell] of [["cache", cache], ["state", state]]) {
          this.drawBar(cell, written ? answer[name].weights[i] : null);
          cell[0].parentElement.parentElement.classList.toggle("memory-asked", i === here);
          this.drawSaid(cell[2], words[i][0], told.answers[i], name);
        }
      });
      this.keys.textContent = n > SHOWN
        ? `The first ${SHOWN} of ${n} keys. Press one to ask for it`
        : "Press a key to ask for it. Dashed: not written yet";
      this.table.classList.toggle("memory-signed", !normalized);
      const { width } = rules, numbers = width * width + (normalized ? width : 0);
      this.drawSide(
        "cache",
        told,
        `Softmax (its cache): ${Elements.grouped(2 * width * n)} numbers`,
      );
      this.drawSide("state", told, `Linear (its state): ${Elements.grouped(numbers)} numbers`);
    }
  }

  /* The controls. They call pairs(n), list(i), change({setting: value}), keys(which). */
  function controls({ pairs, list, change, keys, trained }) {
    const slider = (id, label, values, first, act) => Stage.slider(`memory-${id}`, label, values, first, act);
    const sliders = {
      pairs: slider("pairs", "Pairs", range(MOST + 1), 8, pairs),
      width: slider("width", "Width d", WIDTHS, FIRST.width, (value) => change({ width: value })),
      decay: slider("decay", "Decay γ", DECAYS, FIRST.decay, (value) => change({ decay: value })),
    };
    const names = Object.keys(KEYS).filter((name) => trained || name !== "trained");
    const kinds = Stage.radios("Keys", names, FIRST.keys, keys);
    const map = Stage.select("memory-map", "Feature map φ", MAPS, FIRST.map, (map) => change({ map }));
    const rule = Stage.radios(
      "Writing",
      { add: "adds", delta: "delta rule" },
      "add",
      (value) => change({ delta: value === "delta" }),
    );
    const lists = Stage.select("memory-list", "List", { ...LISTS }, 0, list);
    return { sliders, kinds, map, rule, lists };
  }

  /* Keys and queries of both memories from their files, as rows. */
  async function load(files) {
    const found = {};
    for (const [name, file] of Object.entries(files)) {
      const arrays = await Stored.arrays(await Stored.bytes(file)), width = arrays.k.length / MOST;
      const rows = (flat) => range(MOST).map((i) => [...flat.subarray(i * width, (i + 1) * width)]);
      found[name] = { k: rows(arrays.k), q: rows(arrays.q) };
    }
    return found;
  }

  Stage.mount("memory", (stage) => {
    const source = document.getElementById("trained-keys");
    const trained = source && JSON.parse(source.textContent);
    const lab = new Lab(), columns = new Columns(lab, choose), state = new StatePicture(lab);
    const formula = element("p", { class: "memory-formula" }), why = element("p", { class: "memory-why" });
    let before = null, looked = null; // the steps drawn last, in all and inside

    function render(n) {
      columns.draw(n, lab.here(n), n ? lab.ask(lab.here(n), n) : null);
      sliders.pairs.put(n);
      looked = null;
      if (inside.open) look(n);
      before = n;
    }
    /* Folded parts are not drawn. */
    function look(n) {
      const here = lab.here(n);
      state.lay();
      state.draw(n, here, n ? lab.ask(here, n) : null);
      formula.textContent = lab.formula();
      if (!Stage.calm && before !== null && n === before + 1) state.slide();
      looked = n;
    }

    function choose(i) {
      lab.asked = i;
      steps.show(Math.max(i + 1, steps.step()));
    }
    function write(words, settings, n = steps.step()) {
      lab.set(words, settings);
      why.textContent = KEYS[lab.settings.keys];
      before = null;
      steps.show(n);
    }
    function list(i) {
      lab.asked = 0;
      write(LISTS[i].pairs.split(", ").map((pair) => pair.split(" ")), {});
    }
    function change(settings) {
      const told = Object.entries(settings);
      if (told.some(([name, value]) => lab.settings[name] !== value)) write(lab.words, settings);
      sliders.width.put(WIDTHS.indexOf(lab.rules.width)); // trained keys have their own
    }

    async function choice(which) {
      const width = sliders.width.querySelector("input"), asked = which === "trained";
      width.disabled = asked;
      if (asked && !lab.trained) {
        steps.line.textContent = "Loading the keys.";
        columns.table.ariaBusy = true;
        try {
          lab.trained = await load(trained.files);
        } catch (error) {
          steps.line.textContent = `The keys cannot be loaded: ${error.message}.`;
          return;
        } finally {
          columns.table.ariaBusy = false;
        }
        if (Stage.pick(kinds).now() !== which) return; // another was chosen meanwhile
      }
      change({ keys: which });
    }

    const steps = Stage.stepper(stage, { length: () => MOST, render, say: lab.said, milliseconds: 900 });
    const { sliders, kinds, map, rule, lists } = controls({
      pairs: (n) => steps.show(n),
      list,
      change,
      keys: choice,
      trained,
    });
    const inside = Stage.more(
      "feature map, delta rule, another list, the matrices",
      element("div", { class: "memory-picture" }, state.picture, formula),
      element("div", { class: "stage-row" }, map, rule, lists),
    );
    inside.addEventListener("toggle", () => inside.open && (looked ?? look(steps.step())));
    stage.append(
      element("div", { class: "stage-row memory-keys" }, kinds, why),
      element(
        "div",
        { class: "memory" },
        element("div", { class: "memory-sliders" }, ...Object.values(sliders)),
        columns.table,
        steps.line,
      ),
      steps.bar,
      inside,
      ...(trained ? [Stage.provenance(trained.sources)] : []),
    );
    list(0);
    steps.show(8);
    const keys = Stage.pick(kinds);
    return {
      keys: [keys, FIRST.keys],
      list: [Stage.entry(lists), 0],
      width: [
        Stage.setter(Stage.slide(sliders.width, WIDTHS), () => String(lab.settings.width)),
        FIRST.width,
      ],
      map: [Stage.entry(map), FIRST.map],
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
