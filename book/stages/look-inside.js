"use strict";

/* Inside a trained head. A model reads a page whose last words also occurred earlier on it. All
   heads are squares; one is open, and the page shows where it looks. Heads may be confined to their
   window, and the guesses of the returning words get worse. The page's data come from the figures
   module, element #look-inside-data; the arrays of a text are in a file that loads when the stage
   is near. */

{
  const { element } = Stage;
  const { percent } = Likely;
  const { Curve, Grid } = LookPictures;
  const { Likeliest, Reading, quoted } = LookText;
  const NEAR = "800px", LEAST = 0.05; // distance at which it loads; the least weight with an arrow
  const MODES = { first: "the first of the ranking", head: "the open head alone", none: "no head" };

  const ordinal = (n) => `${n}${[, "st", "nd", "rd"][n % 100 > 10 && n % 100 < 14 ? 0 : n % 10] ?? "th"}`;

  class Inside {
    constructor(stage, data) {
      Object.assign(this, { stage, data, page: 0, open: 0, mode: "first", first: data.few, files: [] });
      this.names = data.heads.map(([layer, head]) => `${layer}.${head}`);
      this.firsts = data.pages[0].sets.filter(([where]) => where === "first").map(([, number]) => number);
      this.firsts.unshift(0);
      this.grid = new Grid(data, (layer, head) => this.choose(this.names.indexOf(`${layer}.${head}`)));
      this.about = element("p", { class: "look-about" });
      const told = (i) => Math.min(i, this.last);
      this.text = new Reading(
        data.first,
        (i) => this.steps.show(told(i)),
        (i) => this.peek(i === null ? null : told(i)),
      );
      this.curve = new Curve(data.pages[0].passage[2]);
      this.counts = element("div", { class: "stage-counts look-counts" });
      this.likely = [new Likeliest(), new Likeliest()];
      this.steps = Stage.stepper(stage, {
        length: () => this.last,
        render: (word) => this.render(word),
        say: (word) => this.say(word),
        milliseconds: 900,
      });
      this.makeControls();
      stage.append(...this.parts());
      new MutationObserver(() => this.drawGrid()).observe(document.documentElement, {
        attributeFilter: ["data-theme"],
      });
      this.turn(0);
      const watcher = new IntersectionObserver((seen) => {
        if (!seen.some((one) => one.isIntersecting)) return;
        watcher.disconnect();
        this.near = true;
        this.load();
      }, { rootMargin: NEAR });
      watcher.observe(stage);
    }

    get now() {
      return this.data.pages[this.page];
    }

    get looks() {
      return this.files[this.page];
    }

    /* The last word that has a next one. */
    get last() {
      return this.now.tokens.length - 2;
    }

    makeControls() {
      const { data } = this;
      this.pages = Stage.select(
        "look-page",
        "A page of",
        { ...data.pages.map(({ title }) => title) },
        0,
        (i) => this.turn(Number(i)),
      );
      this.heads = Stage.select(
        "look-head",
        "Open head (layer.head)",
        { ...this.names.map((name, i) => `${name}, ${ordinal(i + 1)} of the ranking`) },
        0,
        (i) => this.choose(Number(i)),
      );
      this.modes = Stage.radios("Confined to their window", MODES, this.mode, (mode) => {
        this.mode = mode;
        this.again();
      });
      this.slider = Stage.slider(
        "look-first",
        "The first, how many",
        this.firsts,
        this.first,
        (n) => {
          this.first = n;
          if (this.mode !== "first") this.modes.querySelector("input").click();
          else this.again();
        },
      );
    }

    parts() {
      const quiet = (words) => element("p", { class: "look-label" }, words);
      this.steps.line.classList.add("look-line");
      return [
        this.steps.line,
        element(
          "div",
          { class: "look-heads" },
          quiet(
            "Each square is a head: layers across, numbers up. Press one. Orange: recall depends on it, by "
              + "its gradient. A diagonal: when the passage returns, it looks at the first copy. Framed: "
              + `confined to the last ${this.data.window} tokens and the first ${this.data.first}.`,
          ),
          this.grid.canvas,
          this.about,
        ),
        element("div", { class: "stage-row" }, this.heads, this.pages),
        this.text.node,
        this.counts,
        this.steps.bar,
        element(
          "div",
          { class: "look-below" },
          element("div", {}, this.modes, this.slider),
          element("div", {}, quiet(`Guesses right, of ${this.curve.of}, by heads confined`), this.curve.node),
          ...this.likely.map(({ node }) => node),
        ),
        Stage.provenance(this.data.sources),
      ];
    }

    /* Loads the arrays of the page that is shown, once the stage is near. */
    async load() {
      const { page } = this, { file, tokens, passage } = this.now;
      if (!this.near || this.files[page]) return;
      try {
        const arrays = await Stored.arrays(await Stored.bytes(file));
        const [, heads] = this.data.shape;
        this.files[page] = Looks.open(arrays, { heads, tokens: tokens.length, passage: passage[2] });
        if (page === this.page) this.again();
      } catch (error) {
        this.trouble = `What the heads look at cannot be shown here: ${error.message}.`;
        this.again();
      }
    }

    /* Changes the page: its words, and the token that it begins with. */
    turn(page) {
      Object.assign(this, { page, trouble: null });
      this.text.lay(this.now);
      this.load();
      this.steps.show(this.now.start);
    }

    choose(open) {
      this.open = open;
      this.heads.querySelector("select").value = open;
      const alone = [...this.modes.querySelectorAll("input")].find(({ value }) => value === "head");
      alone.disabled = this.row("head", open) < 0;
      if (alone.disabled && this.mode === "head") this.modes.querySelector("input").click();
      else this.again();
    }

    /* Shows what is seen from a word under the mouse; null: from the chosen word. */
    peek(word) {
      if (this.steps.playing()) return;
      const shown = word ?? this.steps.step();
      this.render(shown);
      this.steps.line.textContent = this.say(shown);
    }

    again() {
      this.steps.show(this.steps.step());
    }

    row(where, number = 0) {
      return this.now.sets.findIndex(([one, other]) => one === where && other === number);
    }

    /* The chosen row of `sets`, its name, and the names of its heads. */
    get confined() {
      const { mode, first, open } = this;
      if (mode === "head") {
        return {
          row: this.row("head", open),
          words: `${this.names[open]} confined`,
          heads: [this.names[open]],
        };
      }
      if (mode === "none" || !first) return { row: this.row("none"), words: "no head confined", heads: [] };
      const words = first === this.names.length ? "all heads confined" : `the first ${first} confined`;
      return {
        row: this.row("first", first),
        words: first === 1 ? "the first head confined" : words,
        heads: this.names.slice(0, first),
      };
    }

    /* The attention of the open head from a word: {place: weight}; the place it looks at most,
       apart from the first, and its weight. */
    look(word) {
      const [layer, head] = this.data.heads[this.open], found = this.looks?.look(layer, head, word) ?? [];
      const [place, weight] = found.filter(([one]) => one > 0).sort((a, b) => b[1] - a[1])[0] ?? [0, 0];
      return { found: new Map(found), place, weight };
    }

    render(word) {
      const { confined } = this, { found, place, weight } = this.look(word);
      const most = weight >= LEAST && place < word ? place : null;
      this.text.mark(word, { found, most, edge: word - this.data.window + 1 });
      const grid = [this.page, this.open, confined.row, Boolean(this.looks)].join();
      if (grid !== this.drawnGrid) this.drawGrid();
      this.drawnGrid = grid;
      if (this.looks) this.text.guess(confined.words, (which, i) => this.best(which, i)[0][0]);
      this.drawCounts(word, confined);
      const [layer, head, brings] = this.data.heads[this.open];
      this.about.textContent = `Head ${layer}.${head}, ${ordinal(this.open + 1)} of ${this.names.length}. `
        + `By its gradient, confining it lowers the gain by ${brings.toFixed(2).replace("-", "−")} nats.`;
    }

    drawGrid() {
      const { looks, now: { passage: [first, again, length] } } = this;
      const dots = (layer, head) => {
        const found = [];
        for (let i = 0; i < length; i++) {
          for (const [place, weight] of looks.look(layer, head, again + i)) {
            if (place >= first && place < first + length) {
              found.push([i / length, (place - first) / length, weight]);
            }
          }
        }
        return found;
      };
      const [layer, head] = this.data.heads[this.open];
      this.grid.draw({
        open: [layer, head],
        confined: new Set(this.confined.heads),
        dots: looks ? dots : null,
        side: 1 / length,
      });
    }

    drawCounts(word, { row, words }) {
      const { now: { sets, passage: [, again, length] } } = this;
      const free = this.row("none"), once = this.row("once");
      const fact = (label, set) =>
        element("div", {}, element("span", {}, label), element("b", {}, `${sets[set][2]} of ${length}`));
      this.counts.replaceChildren(
        fact("Right, all free", free),
        fact(`Right, ${words}`, row),
        fact("Right, the first time", once),
      );
      const points = this.firsts.map((n) => [n, sets[n ? this.row("first", n) : free][2]]);
      this.curve.draw(points, sets[once][2], { first: this.first, none: 0 }[this.mode]);
      const i = word + 1 - again;
      this.likely.forEach((list, which) => {
        const best = this.looks && i >= 0 ? this.best(which, i) : [];
        list.draw(`Next word, ${["all heads free", words][which]}`, best);
      });
    }

    /* The likeliest words for token i of the passage, with all heads free (0) or as chosen (1). */
    best(which, i) {
      const { row } = this.confined;
      return this.looks.guess(which ? row : this.row("none"), i).best
        .map(([guess, share]) => [this.now.vocabulary[guess], share]);
    }

    say(word) {
      if (this.trouble) return this.trouble;
      const { now: { tokens, passage: [first, again] }, looks, data } = this, name = this.names[this.open];
      if (!looks) {
        return `Having read ${quoted(tokens[word])}, word ${word + 1}, head ${name} looks … (loading)`;
      }
      const { found, place, weight } = this.look(word), sink = found.get(0) ?? 0;
      const lag = again - first, back = word - place;
      const where = place + lag === word
        ? `the same word in the first copy`
        : place + lag === word + 1
        ? `the word after it in the first copy`
        : back
        ? `${back} back`
        : "itself";
      let said = `Having read ${quoted(tokens[word])}, head ${name} `
        + (weight >= LEAST
          ? `looks at ${quoted(tokens[place])} (${percent(weight)}), ${where}.`
          : "looks at no word in particular.");
      if (sink >= 0.5) said += ` The first token gets ${percent(sink)}.`;
      if (weight >= LEAST && back >= data.window && place >= data.first) {
        said += " Confined, it could not see that far.";
      }
      const i = word + 1 - again;
      if (i < 0) return said;
      const { row, words } = this.confined, free = this.row("none");
      const shares = [free, row].map((set) => percent(looks.guess(set, i).wanted));
      return `${said} Next comes ${quoted(tokens[word + 1])}: ${shares[0]} with all heads free`
        + (row === free ? "." : `, ${shares[1]} with ${words}.`);
    }
  }

  Stage.mountStored("look-inside", (stage, data) => {
    const inside = new Inside(stage, data), { steps } = inside;
    const name = Stage.setter((text) => {
      const i = inside.names.indexOf(text);
      if (i < 0) return false;
      inside.choose(i);
    }, () => inside.names[inside.open]);
    const word = Stage.setter((text) => {
      const n = text ? Number(text) - 1 : inside.now.start;
      if (!Number.isInteger(n) || n < 0 || n > inside.now.tokens.length - 2) return false;
      steps.show(n);
    }, () => (steps.step() === inside.now.start ? "" : String(steps.step() + 1)));
    return {
      page: [Stage.entry(inside.pages), 0],
      head: [name, inside.names[0]],
      first: [Stage.slide(inside.slider, inside.firsts), data.few],
      confined: [Stage.pick(inside.modes), "first"],
      word: [word, ""],
    };
  });
}
