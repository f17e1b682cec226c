"use strict";

/* The memory lab. Pairs of words are written one by one into the state of linear attention, and
   a cache keeps them all. One key is asked for: the columns show the weight of every stored value
   in the two answers, and the curve how many of the keys would be answered right. */

{
  const { element, svg } = Stage;
  const LISTS = {
    "Twelve keys": "cat hat, bee tin, bat egg, hog wax, emu pie, fox fig, cod oil, hen toy, owl gem, pig ink, yak cup, ant tea",
    "One key twice": "cat hat, bee tin, bat egg, hog wax, cat nut, fox fig, cod oil, hen toy, owl gem, pig ink, yak cup, ant tea",
  };
  const MAPS = { elu_plus_one: "elu + 1", relu: "relu", softplus: "softplus", exp: "exp", identity: "none, keys of length 1" };
  const WIDTHS = [4, 8, 16, 32], DECAYS = [0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1];
  const MOST = 12, DRAWN = 24, DRAWS = 16;  // pairs in a list and on the curve, lists it is a mean of
  const FIRST = { width: 8, map: "elu_plus_one", decay: 1, delta: false };
  const SIDES = { cache: "memory-cache", state: "memory-state" };

  const range = (n) => Array.from({ length: n }, (_, i) => i);
  const percent = (share) => `${Math.round(100 * share) || 0}`.replace("-", "−");

  /* A list of pairs, written into both memories, and what these answer. */
  class Lab {
    settings = { ...FIRST };
    asked = 0;  // the place of the pair whose key is asked for

    /* words: the list of pairs; settings: what changes of them. */
    set(words, settings) {
      this.words = words;
      Object.assign(this.settings, settings);
      this.pairs = Recall.pairs(this.words, this.settings);
      Object.assign(this, Recall.memory(this.pairs, this.settings));  // its states and shares
    }

    /* After n pairs, asked for the key of pair i: its features, the two answers, the weight of each
       stored value in them, and the value that they are nearest to. */
    ask(i, n) {
      const { words, pairs, settings, states, shares } = this;
      const seen = pairs.slice(0, n), values = seen.map((pair) => pair.v), f = Recall.features(pairs[i].k, settings);
      const cache = Recall.softmax(pairs[i].k, seen.map(({ k }) => k)), o = Recall.read(states[n], f, settings);
      const name = (answer) => words[Recall.nearest(answer, values)][1];
      const wanted = words.slice(0, n).findLast(([key]) => key === words[i][0])[1];
      return {
        f, o, wanted, cache: { weights: cache, said: name(Recall.mean(cache, values)) },
        state: { weights: Recall.read(shares[n], f, settings).slice(0, n), said: name(o) },
      };
    }

    /* The pair asked for after n pairs: the last of them, where it is not written yet. */
    here = (n) => Math.min(this.asked, n - 1);

    rewritten = (i, n) => this.words.slice(i + 1, n).some(([key]) => key === this.words[i][0]);

    /* Of the keys written so far, how many a memory answers with what they were given last. */
    score(n) {
      const all = range(n).filter((i) => !this.rewritten(i, n)).map((i) => this.ask(i, n));
      const right = (name) => all.filter((answer) => answer[name].said === answer.wanted).length;
      return { of: all.length, cache: right("cache"), state: right("state") };
    }

    formula() {
      const { settings } = this, γ = settings.decay < 1 ? `${settings.decay} ` : "", k = "φ(k)", unit = Recall.normalized(settings) ? "" : ", |φ| = 1";
      const added = settings.delta ? `${k} (v − ${γ}Sᵀ${k})ᵀ` : `${k} vᵀ`;
      return `S ← ${γ}S + ${added}, ` + (unit ? `o = Sᵀφ(q)${unit}` : `z ← ${γ}z + ${k}, o = Sᵀφ(q) / (z·φ(q) + ε)`);
    }

    said(n) {
      if (!n) return "Nothing is written. The cache is empty and the state is zero.";
      const { words } = this, here = this.here(n), { wanted, cache, state } = this.ask(here, n), { of, ...right } = this.score(n);
      const at = range(n).findLast((i) => words[i][0] === words[here][0]), pairsOf = n === 1 ? "1 pair" : `${n} pairs`;
      const held = percent(state.weights[at]), there = Recall.normalized(this.settings) ? `the state ${held}%` : `the state's answer holds ${held}% of it`;
      return `${pairsOf}. Asked for ${words[here][0]}, the cache gives ${wanted} ${percent(cache.weights[at])}% of the weight, ${there}`
        + `${state.said === wanted ? "" : `, and its answer is nearer to ${state.said}`}. Right for ${right.state} of ${of} keys; the cache, ${right.cache}.`;
    }
  }

  /* The columns: a pair each, the weight of its value in either answer, what the state answers. */
  class Columns {
    constructor(lab, choose) {
      this.lab = lab;
      this.columns = range(MOST).map((i) => {
        const key = element("b"), value = element("span");
        const button = element("button", { type: "button", onclick: () => choose(i) }, key, value);
        const bar = () => element("i"), number = () => element("span");
        return { key, value, button, cache: [bar(), number()], state: [bar(), number()], said: element("td") };
      });
      const named = (css, text) => element("tr", {}, element("th", { class: `memory-label ${css}`.trim(), scope: "rowgroup", colspan: MOST }, text));
      const bars = (name) => element("tr", { class: SIDES[name] }, this.columns.map((column) =>
        element("td", {}, element("div", { class: "memory-bar" }, column[name][0]), column[name][1])));
      this.labels = { cache: element("span"), state: element("span") };
      this.table = element("table", { class: "memory-columns" },
        element("tbody", {}, named("", "Keys and their values. Press one to ask for it"),
          element("tr", {}, this.columns.map(({ button }) => element("td", {}, button)))),
        element("tbody", {}, named(SIDES.cache, this.labels.cache), bars("cache")),
        element("tbody", {}, named(SIDES.state, this.labels.state), bars("state")),
        element("tbody", {}, named("", "What the state answers to each key"), element("tr", { class: "memory-said" }, this.columns.map(({ said }) => said))));
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
        const found = written && !this.lab.rewritten(i, n) ? this.lab.ask(i, n) : null, right = found?.state.said === found?.wanted;
        said.textContent = found ? (right ? "✓" : found.state.said) : "";
        said.title = found ? `${words[i][0]}: ${found.state.said}, ${right ? "right" : `not ${found.wanted}`}` : "";
        said.className = found && !right ? "memory-wrong" : "";
      });
      this.table.classList.toggle("memory-signed", !Recall.normalized(settings));
      const { width } = settings, numbers = width * width + (Recall.normalized(settings) ? width : 0);
      this.labels.cache.textContent = `Softmax, a cache of ${2 * width * n} numbers: weights in %`;
      this.labels.state.textContent = `Linear, a state of ${numbers} numbers: ` + (Recall.normalized(settings)
        ? "weights in %" : "how much of each value its answer holds, in % (no normaliser: they need not add up to 100)");
    }
  }

  /* A grid of squares, a square for a number, darker for a larger one. */
  function grid(rows, count, x, y, width, height) {
    const [w, h] = [width / count, height / rows], gap = Math.min(1, w / 8);
    const cells = range(rows * count).map((i) =>
      svg("rect", { x: x + (i % count) * w, y: y + Math.floor(i / count) * h, width: w - gap, height: h - gap }));
    return { node: svg("g", {}, cells), paint(numbers, most = Math.max(...numbers.map(Math.abs)) || 1) {
      cells.forEach((cell, i) => {
        cell.setAttribute("class", numbers[i] < 0 ? "memory-below" : "");
        cell.setAttribute("fill-opacity", (0.04 + 0.96 * (Math.abs(numbers[i]) / most) ** 0.7).toFixed(3));
      });
    } };
  }

  const MINI = 66, BOX = 136, TOP = 36, STRIP = 8, FROM = STRIP + 5, TO = 118, LINE = 15;
  const written = (x, y, anchor, ...children) => svg("text", { x, y, "text-anchor": anchor }, ...children);

  /* The state: what was written last, S, the query and the answer. */
  class StatePicture {
    constructor(lab) {
      this.lab = lab;
      this.picture = svg("svg", { viewBox: "0 0 256 226", role: "img" });
    }

    /* The grids, for the width that is chosen. */
    lay() {
      const { width: d } = this.lab.settings, below = TOP + BOX + 6;
      this.grids = {
        k: grid(d, 1, 2, TOP, STRIP, MINI), u: grid(1, d, FROM, TOP - STRIP - 3, MINI, STRIP), added: grid(d, d, FROM, TOP, MINI, MINI),
        q: grid(d, 1, TO - STRIP - 3, TOP, STRIP, BOX), S: grid(d, d, TO, TOP, BOX, BOX),
        o: grid(1, d, TO, below, BOX, STRIP), v: grid(1, d, TO, below + LINE, BOX, STRIP), said: grid(1, d, TO, below + 2 * LINE, BOX, STRIP),
      };
      const [o, v, said] = range(3).map((i) => written(TO - 8, below + i * LINE + 8, "end"));
      this.labels = { o, v, said, pair: written(FROM, TOP + MINI + 15, "start"), rule: written(FROM, 14, "start") };
      this.picture.replaceChildren(
        svg("rect", { class: "memory-frame", x: FROM - 1, y: TOP - 1, width: MINI + 1, height: MINI + 1 }),
        svg("rect", { class: "memory-frame", x: TO - 1, y: TOP - 1, width: BOX + 1, height: BOX + 1 }),
        svg("path", { class: "memory-arrow", d: `M${FROM + MINI + 5} ${TOP + MINI / 2}h10m-4 -4l4 4l-4 4` }),
        written(TO + BOX, 14, "end", svg("tspan", { class: "memory-strong" }, "S"), `, ${d} × ${d}`), written(TO - 4, TOP - 6, "end", "φ(q)"),
        ...Object.values(this.grids).map(({ node }) => node), ...Object.values(this.labels));
      this.most = Math.max(...this.lab.states.flatMap(({ S }) => S.flat().map(Math.abs)));
    }

    draw(n, here, answer) {
      const { words, pairs, states, settings } = this.lab, { grids, labels } = this;
      const { S, f, u } = states[n], { width: d } = settings, none = Array(d).fill(0);
      const valueOf = (said) => pairs[words.findIndex(([, value]) => value === said)].v;
      grids.S.paint(S.flat(), this.most);
      grids.k.paint(n ? f : none);
      grids.u.paint(n ? u : none);
      grids.added.paint(n ? f.flatMap((a) => u.map((b) => a * b)) : Array(d * d).fill(0));
      grids.q.paint(answer?.f ?? none);
      grids.o.paint(answer?.o ?? none);
      grids.v.paint(answer ? valueOf(answer.wanted) : none);
      grids.said.paint(answer ? valueOf(answer.state.said) : none);
      labels.rule.textContent = settings.delta ? "φ(k) (v − Sᵀφ(k))ᵀ" : "φ(k) vᵀ";
      labels.pair.textContent = n ? words[n - 1].join(" → ") : "";
      labels.o.textContent = answer ? `answer to ${words[here][0]}` : "";
      labels.v.textContent = answer ? `wanted: ${answer.wanted}` : "";
      labels.said.textContent = answer ? `nearest: ${answer.state.said}` : "";
      labels.said.setAttribute("class", answer && answer.state.said !== answer.wanted ? "memory-strong" : "");
      this.picture.setAttribute("aria-label", n ? `Written last: ${words[n - 1].join(" to ")}. The state, ${d} by ${d} numbers.` : "An empty state");
      this.picture.querySelector(".memory-slide")?.remove();
    }

    /* What was written last moves onto the state. */
    slide() {
      const scale = BOX / MINI, copy = this.grids.added.node.cloneNode(true);
      copy.setAttribute("class", "memory-slide");
      copy.style.setProperty("--to", `translate(${TO - scale * FROM}px, ${TOP * (1 - scale)}px) scale(${scale})`);
      this.picture.append(copy);
    }
  }

  /* The line with these options, one list nearer to the mean of all of them at each call. */
  const known = new Map();
  function mean(options) {
    const name = JSON.stringify(options);
    if (!known.has(name)) known.set(name, { nearer: Recall.curve(options, DRAWN, DRAWS), line: null, lists: 0 });
    const found = known.get(name);
    if (found.lists < DRAWS) Object.assign(found, { line: found.nearer.next().value, lists: found.lists + 1 });
    return found;
  }

  const HEIGHT = 160, LEFT = 30, BOTTOM = 36, UP = 20;
  const y = (share) => HEIGHT - BOTTOM - (HEIGHT - UP - BOTTOM) * share;

  /* The curve: a line for any list, dots for this one. */
  class Curve {
    due = 0;  // the next frame in which it is drawn

    constructor(lab) {
      this.lab = lab;
      this.graph = svg("svg", { role: "img", "aria-label": "Share of the keys answered right against the number of pairs written" });
      this.frame = element("div", { class: "memory-curve" }, this.graph,
        element("p", { class: "memory-quiet" }, `Lines: the mean of ${DRAWS} lists of random pairs. Dots: the list above.`));
    }

    /* True once both lines are the mean of all lists. */
    draw(scores) {
      const { settings } = this.lab, width = Math.max(200, this.frame.clientWidth || 300);
      const x = (i) => LEFT + ((width - LEFT - 8) * (i - 1)) / (DRAWN - 1);
      const lines = { cache: mean({ width: settings.width }), state: mean(settings) };
      const close = lines.cache.line.at(-1) - lines.state.line.at(-1) < 0.15;
      const side = (name, label, below) => {
        const { line } = lines[name];
        return svg("g", { class: SIDES[name] },
          svg("path", { d: line.map((share, i) => `${i ? "L" : "M"}${x(i + 1).toFixed(1)} ${y(share).toFixed(1)}`).join("") }),
          ...scores.map((found, i) => svg("circle", { cx: x(i + 1), cy: y(found[name] / found.of), r: i === scores.length - 1 ? 4.5 : 2.5 })),
          svg("text", { x: width - 8, y: y(line.at(-1)) + (below ? 15 : -7), "text-anchor": "end" }, label));
      };
      this.graph.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
      this.graph.replaceChildren(
        ...[0, 0.5, 1].flatMap((share) => [
          svg("path", { class: "roofline-grid", d: `M${LEFT} ${y(share)}H${width}` }),
          svg("text", { class: "roofline-tick", x: LEFT - 6, y: y(share) + 4, "text-anchor": "end" }, percent(share))]),
        ...[1, 8, 16, DRAWN].map((i) => svg("text", { class: "roofline-tick", x: x(i), y: HEIGHT - BOTTOM + 15, "text-anchor": "middle" }, i)),
        svg("text", { class: "roofline-tick", x: 0, y: 10 }, "Keys answered right, %"),
        svg("text", { class: "roofline-tick", x: width, y: HEIGHT - 1, "text-anchor": "end" }, "pairs written"),
        side("cache", "softmax", false), side("state", "linear", close));
      return lines.cache.lists === DRAWS && lines.state.lists === DRAWS;
    }

    // Once a frame: an address that sets five controls would have five curves computed. And a list a
    // frame: all of them at once would hold up a phone for a third of a second.
    drawSoon(step) {
      cancelAnimationFrame(this.due);
      const next = (act) => (this.due = requestAnimationFrame(act));
      next(() => {
        const scores = range(step()).map((i) => this.lab.score(i + 1));
        const goOn = () => this.draw(scores) || next(goOn);
        goOn();
      });
    }
  }

  /* A pair of the reader's own: write(pair) takes it. */
  function ownPair(write) {
    const field = (label, value) => element("label", { class: "figure-control" }, element("span", { class: "figure-label" }, label),
      element("input", { type: "text", value, maxlength: 6, size: 5, autocomplete: "off", autocapitalize: "off", spellcheck: "false" }));
    const fields = [field("Key", "cat"), field("Value", "rye")];
    return element("form", { class: "stage-row", onsubmit: (event) => {
      event.preventDefault();
      const pair = fields.map((one) => one.querySelector("input").value.trim().replace(/\s+/g, "-"));
      if (pair.every(Boolean)) write(pair);
    } }, fields, element("button", { type: "submit" }, "Write"));
  }

  /* What the reader sets: pairs(n), list(name), change({setting: value}). */
  function controls({ pairs, list, change }) {
    const sliders = {
      width: Stage.slider("memory-width", "Width d", WIDTHS, FIRST.width, (value) => change({ width: value })),
      pairs: Stage.slider("memory-pairs", "Pairs written", range(MOST + 1), 8, pairs),
      decay: Stage.slider("memory-decay", "Decay γ", DECAYS, FIRST.decay, (value) => change({ decay: value })),
    };
    const map = Stage.select("memory-map", "Feature map φ", Object.values(MAPS), 0, (i) => change({ map: Object.keys(MAPS)[i] }));
    const rule = Stage.radios("Writing", { add: "adds", delta: "delta rule" }, "add", (value) => change({ delta: value === "delta" }));
    const lists = Stage.select("memory-list", "List", Object.keys(LISTS), 0, (i) => list(Object.keys(LISTS)[i]));
    return { sliders, map, rule, lists };
  }

  Stage.mount("memory", (stage) => {
    const lab = new Lab(), columns = new Columns(lab, choose), state = new StatePicture(lab), curve = new Curve(lab);
    const formula = element("p", { class: "memory-formula" });
    let before = null;  // the step that was drawn last

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
      element("div", { class: "memory" },
        element("div", { class: "memory-asking" }, columns.table, steps.line, steps.bar),
        element("div", { class: "memory-picture" }, state.picture, formula), curve.frame),
      element("div", { class: "stage-row memory-settings" }, Object.values(sliders), map, rule, lists, form));
    Stage.keys(stage, steps, () => MOST);
    list(Object.keys(LISTS)[0]);
    steps.show(8);
    new ResizeObserver(() => curve.drawSoon(steps.step)).observe(curve.frame);
    return {
      list: [Stage.entry(lists), 0], width: [Stage.slide(sliders.width, WIDTHS), FIRST.width],
      map: [Stage.entry(map, Object.keys(MAPS)), FIRST.map], decay: [Stage.slide(sliders.decay, DECAYS), FIRST.decay],
      rule: [Stage.pick(rule), "add"], pairs: [Stage.whole(steps.show, steps.step, 0, MOST), 8],
      ask: [Stage.whole((i) => (lab.asked = i - 1, steps.show(steps.step())), () => lab.asked + 1, 1, MOST), 1],
    };
  });
}
