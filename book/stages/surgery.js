"use strict";

/* Operations on the linear writer's memory: a word is subtracted from its state, or half of another
   text's state is added. The model continues from both states side by side. The results for the
   first text are data of the page, element #surgery-data. For other texts the model is loaded. */

{
  const { element } = Stage;
  const { percent } = Likely;
  const { bars, clean, likeliest } = SamplerSide;
  const { Reading, moved, wordsOf } = Surgeon;
  const MOST = 400, SHOWN = 90, DUE = 60; // letters of a text, letters shown; ms between letters
  const TEMPERATURE = 0.8, SEED = 1;
  const WAYS = { cut: "Take a word out", add: "Add half of another text’s state" };

  const encoded = (text) => [...new TextEncoder().encode(text || "\n")];

  class Surgery {
    constructor(stage, data) {
      Object.assign(this, { data, way: "cut", timer: 0 });
      this.makeControls(data);
      stage.append(...this.parts(data));
      this.begin();
    }

    makeControls(data) {
      const typed = { maxlength: MOST / 2, onchange: () => this.begin() };
      [this.text, this.firstText] = Stage.field("surgery-text", "Linear has read", data.text, typed);
      [this.second, this.secondText] = Stage.field("surgery-second", "The other text", data.second, typed);
      this.ways = Stage.radios("Operation", WAYS, this.way, (way) => {
        this.way = way;
        this.apply();
      });
      this.chips = element("div", {
        class: "surgery-words",
        role: "group",
        "aria-label": "Words to take out",
      });
      this.line = element("p", { class: "stage-line", role: "status" });
      this.sides = ["As it was", "After the operation"].map((name) => {
        const likely = element("ol", { class: "sampler-likely" }),
          text = element("p", { class: "film-text" });
        const words = element("p", { class: "film-name" }, `${name}: the next letter`);
        const node = element("section", { class: "film-linear", "aria-label": name }, words, likely, text);
        return { likely, text, node };
      });
      this.play = Stage.button("Go on", () => (this.timer ? this.pause() : this.start()));
      this.buttons = Stage.buttons(
        "Writing",
        this.play,
        Stage.button("One letter", () => this.step()),
        Stage.button("Start over", () => this.begin()),
      );
    }

    parts(data) {
      const load = `For another text the model is loaded once, ${data.megabytes} MB.`;
      const beside =
        "Beside each word: how much of the next letter’s probability goes to other letters without it";
      return [
        this.firstText,
        this.ways,
        element("p", { class: "film-quiet" }, beside),
        this.chips,
        this.secondText,
        element("div", { class: "film" }, this.sides.map(({ node }) => node)),
        this.line,
        this.buttons,
        element("p", { class: "film-quiet" }, load),
        Stage.provenance(data.sources),
      ];
    }

    /* Starts again with the present texts. The data of the page are those of its own texts. */
    begin() {
      const { data, text, second } = this;
      this.stop();
      Object.assign(this, { reading: null, picked: data.picked, bytes: encoded(text.value) });
      this.known = text.value === data.text && second.value === data.second;
      return this.apply(this.known ? data : null);
    }

    /* Loads the model and reads the texts, once. A promise of whether they are there. */
    async ready() {
      try {
        const { file, slopes } = this.data.model;
        const fresh = !this.machine;
        if (fresh) this.line.textContent = "Loading the model …";
        this.machine ??= Writers.machine(await Writers.open(await Stored.bytes(file)), "linear", slopes);
        if (!this.reading) {
          this.reading = new Reading(this.machine, this.bytes);
          this.other = new Reading(this.machine, encoded(this.second.value)).whole.state;
          this.found = this.measured();
        }
        if (fresh) this.line.textContent = this.say();
        return true;
      } catch (error) {
        this.line.textContent = `The model cannot run here: ${error.message}.`;
        return false;
      }
    }

    /* As in the page's data: effects of subtracting each word, and of adding the other state. */
    measured() {
      const { reading, data: { share }, other } = this, { whole } = reading;
      const before = Writers.probabilities(whole.logits, 1);
      const effect = (sums, times) => {
        const after = reading.operated(sums, times), shares = Writers.probabilities(after.logits, 1);
        return {
          ...after,
          sizes: reading.sizes(sums).map((size) => Math.abs(times) * size),
          moved: moved(before, shares),
          likely: likeliest(shares),
        };
      };
      const words = wordsOf(reading.bytes)
        .map((place) => ({ place, ...effect(reading.products(...place), -1) }));
      return { whole, words, likely: likeliest(before), other: effect(other, share) };
    }

    /* Applies the operation. found: its effects, if they are known already. */
    async apply(found = this.known && !this.reading ? this.data : null) {
      this.stop();
      if (!found && !(await this.ready())) return;
      this.found = found ?? this.found;
      this.picked = Math.min(this.picked, this.found.words.length - 1);
      this.pair = null;
      this.secondText.hidden = this.way === "cut";
      this.drawChips();
      this.cut = this.way === "cut" ? this.result?.place : undefined;
      const { likely } = this.found;
      this.draw([likely, this.result?.likely ?? likely], [this.bytes, this.bytes]);
      this.line.textContent = this.say();
    }

    get result() {
      return this.way === "add" ? this.found.other : this.found.words[this.picked];
    }

    /* Whether the model has written after the text, so that its words are no longer the text's. */
    get gone() {
      return this.bytes.length > encoded(this.text.value).length;
    }

    word({ place }) {
      return clean(this.bytes.slice(...place));
    }

    say() {
      const { result, way } = this;
      if (!result) return "There is no word to take out yet.";
      const [near, far] = result.sizes.map(percent), by = percent(result.moved), add = way === "add";
      const what = add ? "half of the other text’s state" : `“${this.word(result)}”`;
      const gone = `${add ? "With" : "Without"} ${what}, ${by} of the next letter’s probability`;
      return `${gone} goes to other letters. What was ${add ? "added" : "subtracted"} is ${near} as large as `
        + `the whole state in near-sighted heads, and ${far} in the others.`;
    }

    /* The text, with its words as buttons. */
    drawChips() {
      const { bytes, found: { words } } = this, nodes = [];
      let at = 0;
      words.forEach((word, i) => {
        const [from, to] = word.place;
        nodes.push(clean(bytes.slice(at, from)).trim());
        nodes.push(element(
          "button",
          {
            type: "button",
            style: `--share: ${word.moved.toFixed(3)}`,
            "aria-pressed": String(this.way === "cut" && !this.pair && i === this.picked),
            onclick: () => this.pick(i),
          },
          element("span", {}, this.word(word)),
          " ",
          element("small", {}, percent(word.moved)),
        ));
        at = to;
      });
      const rest = clean(bytes.slice(at)).trim();
      nodes.push(rest && element("span", {}, rest, " ", element("small", {}, "is read afterwards")));
      const held = [...this.chips.children].indexOf(document.activeElement);
      this.chips.replaceChildren(...nodes.filter(Boolean));
      this.chips.querySelectorAll("button")[held]?.focus();
    }

    pick(i) {
      this.picked = i;
      if (this.way !== "cut") this.ways.querySelector("input").click();
      else this.apply();
    }

    /* The end of a text; the subtracted word is struck through. */
    shown(bytes, [from, to] = [0, 0]) {
      const begin = Math.max(0, bytes.length - SHOWN),
        part = (a, b) => clean(bytes.slice(Math.max(a, begin), b));
      const struck = to > begin ? [part(0, from), element("del", {}, part(from, to))] : [];
      return [begin ? "… " : "", ...struck, part(struck.length ? to : 0, bytes.length)];
    }

    draw(likely, texts) {
      this.sides.forEach((side, i) => {
        side.likely.replaceChildren(...bars(likely[i]));
        side.text.replaceChildren(...this.shown(texts[i], i ? this.cut : undefined));
      });
    }

    /* Both write a letter, with the same random number. False if the text is full or there is no
       model. */
    async write() {
      if (!(await this.ready())) return false;
      this.pair ??= [this.found.whole, this.result ?? this.found.whole].map(({ state, logits }) => ({
        state: structuredClone(state),
        logits,
        bytes: [...this.bytes],
        dice: Stage.random(SEED),
      }));
      if (this.pair[0].bytes.length >= MOST) return false;
      for (const one of this.pair) {
        const letter = Writers.drawn(Writers.probabilities(one.logits, TEMPERATURE), one.dice());
        one.logits = this.machine.read(one.state, letter).slice();
        one.bytes.push(letter);
      }
      const shares = this.pair.map(({ logits }) => likeliest(Writers.probabilities(logits, 1)));
      this.draw(shares, this.pair.map(({ bytes }) => bytes));
      return true;
    }

    async step() {
      this.pause();
      if (await this.write()) this.told();
    }

    start() {
      this.play.textContent = "Pause";
      this.line.setAttribute("aria-live", "off");
      const next = async () => {
        const going = await this.write();
        if (this.timer && going) this.timer = setTimeout(next, DUE);
        else this.pause();
      };
      this.timer = setTimeout(next, 0);
    }

    stop() {
      clearTimeout(this.timer);
      this.timer = 0;
      this.play.textContent = "Go on";
      this.line.setAttribute("aria-live", "polite");
    }

    /* Text written so far becomes the text, so that its words can be chosen. */
    pause() {
      const going = this.timer !== 0;
      this.stop();
      if (going && this.pair) this.told();
    }

    told() {
      const [{ bytes }] = this.pair;
      for (const byte of bytes.slice(this.bytes.length)) this.reading.push(byte);
      this.bytes = [...bytes];
      this.found = this.measured();
      this.picked = this.found.words.length - 1;
      this.drawChips();
      this.line.textContent =
        "Both have gone on. For another operation, pick a word that the first has read or written.";
    }
  }

  Stage.mountStored("surgery", (stage, data) => {
    const surgery = new Surgery(stage, data);
    const typed = (input) =>
      Stage.setter((text) => {
        if (input.value === text) return;
        input.value = text;
        surgery.begin();
      }, () => input.value);
    return {
      text: [typed(surgery.text), data.text],
      second: [typed(surgery.second), data.second],
      way: [Stage.pick(surgery.ways), "cut"],
      word: [
        Stage.whole(
          (i) => surgery.picked === i || surgery.pick(i),
          () => (surgery.gone ? data.picked : surgery.picked),
          0,
          MOST,
        ),
        data.picked,
      ],
    };
  });
}
