"use strict";

/* Two trained models write on the reader's own device, a letter a tick, and are timed doing so.
   Which models is data that the page's figures module writes: element #sampler-data. Their weights
   are files of the book, data/<file>.js, loaded when the reader asks for them. */

{
  const { element, svg } = Stage;
  const { COLOURS, NAMES, count, digits, drawChart, room } = SamplerChart;
  const { MOST, Writer } = SamplerWriter;
  const TEMPERATURES = [0, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.2, 1.5], FIRST = 0.8;
  const TURN = 4, FRAME = 12; // ms that a writer has in a row, and both together between two frames
  const SHOWN = 280, LIKELY = 5, REDRAWN = 150;

  const bytesText = (n) => (n < 2 ** 20 ? `${digits(n / 2 ** 10)} KiB` : `${digits(n / 2 ** 20)} MiB`);
  const readable = (text) => text.replace(/\n/g, " ↵ ").replace(/[\u0000-\u001f\u007f-\u009f]/g, "\ufffd");
  const letterName = (
    byte,
  ) => ({ 10: "↵", 32: "space" }[byte]
    ?? (byte > 32 && byte < 127 ? String.fromCharCode(byte) : `byte ${byte}`));

  const clean = (bytes) => readable(new TextDecoder().decode(Uint8Array.from(bytes)));

  /* The part of the page that shows a writer. */
  function sideOf({ name }) {
    const text = element("p", { class: "film-text sampler-text", dir: "ltr" });
    const fact = (label) => {
      const value = element("b", {}, "–");
      return [value, element("div", {}, element("span", {}, label), value)];
    };
    const [[written, first], [pace, second], [kept, third]] = ["Letters", "Time of one", "Memory"].map(fact);
    const likely = element("ol", { class: "sampler-likely" });
    const writing = element(
      "section",
      { class: `film-writing ${COLOURS[name]}`, "aria-label": `${NAMES[name]} writes` },
      element("p", { class: "film-name" }, NAMES[name]),
      text,
      element("div", { class: "stage-counts sampler-facts" }, first, second, third),
    );
    const next = element(
      "section",
      { class: COLOURS[name], "aria-label": `${NAMES[name]}, its next letter` },
      element("p", { class: "film-quiet" }, "Its next letter"),
      likely,
    );
    const { section: memory, draw: drawMemory } = Remembered.panel(name, {
      class: COLOURS[name],
      "aria-label": `${NAMES[name]}, what it keeps`,
    });
    return { name, text, written, pace, kept, likely, writing, next, memory, drawMemory };
  }

  function bars(shares) {
    const best = [...shares.keys()].sort((a, b) => shares[b] - shares[a]).slice(0, LIKELY);
    return best.map((byte) =>
      element(
        "li",
        {},
        element("span", {}, letterName(byte)),
        element("span", { class: "sampler-bar", style: `--share: ${shares[byte].toFixed(4)}` }),
        element("span", {}, `${Math.round(100 * shares[byte])}%`),
      )
    );
  }

  function showSide(side, writer, temperature) {
    const text = clean(writer.bytes);
    side.text.textContent = text.length > SHOWN ? `… ${text.slice(-SHOWN)}` : text;
    side.written.textContent = count(writer.written);
    side.pace.textContent = writer.pace ? `${digits(writer.pace)} ms` : "–";
    side.kept.textContent = bytesText(4 * writer.machine.kept(writer.bytes.length));
    side.likely.replaceChildren(...bars(Writers.probabilities(writer.logits, temperature || 1)));
  }

  function sentence(writers) {
    if (!writers.length || !writers[0].written) return "Nothing is written yet.";
    const told = writers.map(({ name, written, pace }) => {
      const lately = pace ? `, lately at ${digits(pace)} ms each` : "", plural = written === 1 ? "" : "s";
      return `${NAMES[name].toLowerCase()} has written ${count(written)} letter${plural}${lately}`;
    });
    const spent = Math.max(...writers.map((writer) => writer.spent)) / 1000;
    return `In ${digits(spent)} s each: ${told.join("; ")}.`;
  }

  class Sampler {
    constructor(stage, data) {
      Object.assign(this, {
        stage,
        data,
        writers: [],
        seed: 0,
        running: false,
        temperature: FIRST,
        layer: data.layers,
        drawn: 0,
      });
      this.sides = data.models.map(sideOf);
      this.makeControls(data);
      this.line = element("p", { class: "stage-line", role: "status" }, sentence([]));
      this.picture = svg("svg", {
        class: "sampler-chart",
        role: "img",
        "aria-label": "Time of a letter against the letters read so far; the latest times stand above.",
      });
      stage.append(...this.parts(data));
      this.begin();
      new ResizeObserver(() => this.show()).observe(this.picture);
      new MutationObserver(() => this.show()).observe(document.documentElement, {
        attributes: true,
        attributeFilter: ["data-theme"],
      });
    }

    makeControls(data) {
      this.prompt = element("input", {
        type: "text",
        id: "sampler-prompt",
        value: data.prompt,
        maxlength: 1000,
        autocomplete: "off",
        onchange: () => this.over(),
      });
      this.slider = Stage.slider("sampler-temperature", "Temperature", TEMPERATURES, FIRST, (value) => {
        this.temperature = value;
        this.show();
      });
      const layers = Object.fromEntries(Array.from({ length: data.layers }, (_, i) => [i + 1, `${i + 1}`]));
      this.layers = Stage.radios("What is kept, by layer", layers, `${this.layer}`, (value) => {
        this.layer = Number(value);
        this.show();
      });
      const button = (words, act) => element("button", { type: "button", onclick: act }, words);
      this.play = button("Write", () => (this.running ? this.pause() : this.start()));
      this.one = button("One letter", () => this.step());
      this.again = button("Start over", () => {
        this.seed++;
        this.over();
      });
    }

    /* What stands in the frame, from top to bottom. */
    parts(data) {
      const load = element(
        "p",
        { class: "film-quiet" },
        `The first press loads both models, ${
          digits(data.bytes / 1e6)
        } MB. They run in this page; what you type stays in it.`,
      );
      return [
        element(
          "div",
          { class: "figure-control" },
          element("label", { class: "figure-label", for: "sampler-prompt" }, "Both go on from"),
          this.prompt,
        ),
        element(
          "div",
          { class: "stage-row film-settings" },
          this.slider,
          element(
            "div",
            { class: "stage-buttons", role: "group", "aria-label": "Writing" },
            this.play,
            this.one,
            this.again,
          ),
        ),
        load,
        this.line,
        element("div", { class: "film" }, this.sides.map(({ writing }) => writing)),
        this.picture,
        element("div", { class: "film" }, this.sides.map(({ next }) => next)),
        this.layers,
        element("div", { class: "film" }, this.sides.map(({ memory }) => memory)),
        Stage.provenance(data.sources),
      ];
    }

    /* The models, once: loaded at the first call. A promise of whether they are there. */
    ready() {
      this.coming ??= (async () => {
        this.line.textContent = "Loading the models …";
        this.writers = await Promise.all(
          this.data.models.map(async (model) =>
            new Writer(model, await Writers.open(await Stored.bytes(model.file)))
          ),
        );
        this.begin();
        return true;
      })().catch((error) => {
        this.line.textContent = `The models cannot run here: ${error.message}.`;
        this.coming = null;
        return false;
      });
      return this.coming;
    }

    begin() {
      const prompt = new TextEncoder().encode(this.prompt.value || "\n");
      for (const writer of this.writers) writer.begin(prompt, this.seed);
      this.sides.forEach(({ text }) => text.replaceChildren(this.prompt.value));
      this.show();
      this.line.textContent = sentence(this.writers);
    }

    async start() {
      if (!(await this.ready()) || this.running) return;
      if (this.full()) this.begin();
      this.running = true;
      this.play.textContent = "Pause";
      this.line.setAttribute("aria-live", "off");
      requestAnimationFrame(() => this.frame());
    }

    pause() {
      this.running = false;
      this.play.textContent = "Write";
      this.line.setAttribute("aria-live", "polite");
      this.show();
      this.line.textContent = sentence(this.writers);
    }

    async step() {
      if (!(await this.ready())) return;
      if (this.running) this.pause();
      if (this.full()) return;
      for (const writer of this.writers) {
        writer.read(Writers.drawn(Writers.probabilities(writer.logits, this.temperature), writer.dice()));
      }
      this.show();
      this.line.textContent = sentence(this.writers);
    }

    over() {
      if (this.running) this.pause();
      this.begin();
    }

    full() {
      return this.writers.some(({ bytes }) => bytes.length >= MOST);
    }

    /* Between two frames: turns for whoever has had less time, so that both have the same. */
    frame() {
      if (!this.running) return;
      const until = performance.now() + FRAME;
      do {
        const next = this.writers.reduce((a, b) => (b.spent < a.spent ? b : a));
        next.write(TURN, this.temperature);
      } while (performance.now() < until && !this.full());
      if (this.full()) return this.pause();
      if (performance.now() - this.drawn > REDRAWN) {
        this.show();
        this.line.textContent = sentence(this.writers);
      }
      requestAnimationFrame(() => this.frame());
    }

    show() {
      this.drawn = performance.now();
      this.writers.forEach((writer, i) => {
        showSide(this.sides[i], writer, this.temperature);
        this.sides[i].drawMemory(writer.state[this.layer - 1], room(this.writers));
      });
      drawChart(this.picture, this.picture.clientWidth || 600, this.writers, this.data.bills);
    }
  }

  Stage.mount("sampler", (stage) => {
    const source = document.getElementById("sampler-data");
    if (!source) {
      stage.append(element("p", { class: "film-quiet" }, "No trained models are stored yet."));
      return {};
    }
    const sampler = new Sampler(stage, JSON.parse(source.textContent));
    const prompt = Stage.setter((text) => {
      sampler.prompt.value = text;
      sampler.over();
    }, () => sampler.prompt.value);
    return {
      temperature: [Stage.slide(sampler.slider, TEMPERATURES), FIRST],
      prompt: [prompt, sampler.data.prompt],
      layer: [Stage.pick(sampler.layers), sampler.data.layers],
    };
  });
}
