"use strict";

/* Trained models write on the reader's own device, a letter at a time, and are timed. Linear
   attention can start from a stored state, after a thousand or a million letters of a novel. The
   models are data from the page's figures module: element #sampler-data. Weights and states are
   files of the book, data/<file>.js, loaded when the reader asks for them. */

{
  const { element, svg } = Stage;
  const { count, digits, drawChart, price, room } = SamplerChart;
  const { MOST, Writer } = SamplerWriter;
  const { Side, sentence } = SamplerSide;
  const TEMPERATURES = [0, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.2, 1.5], FIRST = 0.8;
  const LEAST = 4096; // the least number of letters on the chart's axis
  const TURN = 4, FRAME = 12; // ms of a writer's turn, and of all together between two frames
  const REDRAWN = 150, READING = 45; // ms between two pictures, and between letters at reading pace
  const REST = 100; // ms in which nothing is written after a press, so that the page answers it
  const SPEEDS = { race: "Full speed", read: "Reading pace" };

  const encoded = (text) => new TextEncoder().encode(text);

  class Sampler {
    constructor(stage, data) {
      Object.assign(this, {
        stage,
        data,
        writers: [],
        states: {},
        from: 0, // letters read into a stored state; 0: the reader's words
        seed: 0,
        running: false,
        speed: "race",
        temperature: FIRST,
        drawn: 0, // when the picture was drawn last
        rested: 0, // when writing goes on after a press
      });
      this.sides = data.models.map((model) => new Side(model, data));
      const stations = data.stations.map(({ letters }) => letters);
      this.scale = new SamplerScale.Scale(stage, { ...data, stations });
      this.makeControls(data);
      this.makeTeleport(data);
      this.line = element("p", { class: "stage-line", role: "status" });
      this.picture = svg("svg", {
        class: "sampler-chart",
        role: "img",
        "aria-label":
          "Time of a letter against the letters read so far; the latest times stand beside the texts.",
      });
      stage.append(...this.parts(data));
      this.begin();
      new ResizeObserver(() => this.show()).observe(this.picture);
      const rest = () => this.rested = performance.now() + REST;
      for (const kind of ["keydown", "pointerdown"]) addEventListener(kind, rest, true);
    }

    makeControls(data) {
      [this.prompt, this.promptField] = Stage.field("sampler-prompt", "All continue from", data.prompt, {
        maxlength: 1000,
        onchange: () => this.place(0),
      });
      this.slider = Stage.slider("sampler-temperature", "Temperature", TEMPERATURES, FIRST, (value) => {
        this.temperature = value;
        this.running ? this.drawn = 0 : this.show();
      });
      this.speeds = Stage.radios("Speed", SPEEDS, this.speed, (value) => {
        this.speed = value;
        this.catchUp();
      });
      this.more = Stage.more("temperature, speed", this.slider, this.speeds);
      this.play = Stage.button("Write", () => (this.running ? this.pause() : this.start()));
      this.one = Stage.button("One letter", () => this.step());
      this.again = Stage.button("Start over", () => {
        this.seed++;
        this.place(0);
      });
    }

    /* Buttons for the stored states, and a field for words to insert while it writes. */
    makeTeleport(data) {
      this.stations = data.stations.map(({ letters }) =>
        element("button", {
          type: "button",
          "aria-pressed": "false",
          onclick: () => {
            this.place(letters);
            this.start();
          },
        }, count(letters))
      );
      this.said = element("input", {
        type: "text",
        "aria-label": "Words to interrupt them with",
        placeholder: "Interrupt with your words",
        maxlength: 1000,
        autocomplete: "off",
      });
      this.interruption = element(
        "form",
        {
          class: "sampler-said",
          onsubmit: (event) => {
            event.preventDefault();
            this.interrupt();
          },
        },
        element("div", { class: "figure-control" }, this.said),
        element("button", { type: "submit" }, "Read this"),
      );
    }

    /* The parts of the frame, from the top. */
    parts(data) {
      const quiet = (words) => element("p", { class: "film-quiet" }, words), size = digits(data.bytes / 1e6);
      const load =
        `The first press loads the models, ${size} MB. They run in this page; what you type stays in it.`;
      const film = (part) => element("div", { class: "film" }, this.sides.map((side) => side[part]));
      return [
        this.promptField,
        Stage.buttons("Writing", this.play, this.one, this.again),
        element(
          "fieldset",
          { class: "figure-control" },
          element(
            "legend",
            { class: "figure-label" },
            "Or start linear attention after this letter of a novel",
          ),
          element("div", { class: "stage-buttons" }, this.stations),
        ),
        element(
          "div",
          { class: "sampler-view" },
          element("div", {}, quiet("Memory, drawn to scale"), this.scale.node),
          film("writing"),
        ),
        this.line,
        this.picture,
        this.interruption,
        quiet(load),
        this.more,
        film("next"),
        Stage.provenance(data.sources),
      ];
    }

    /* Loads the models, once, and the chosen state. A promise of whether they are there. */
    async ready() {
      const { from, data } = this;
      try {
        if (!this.writers.length || (from && !this.states[from])) {
          this.line.textContent = "Loading the models …";
        }
        this.coming ??= Promise.all(
          data.models.map(async (model) =>
            new Writer(model, await Writers.open(await Stored.bytes(model.file)))
          ),
        );
        const writers = await this.coming, fresh = !this.writers.length;
        const stored = data.stations.find(({ letters }) => letters === from);
        const missing = stored && !this.states[from];
        if (missing) {
          this.states[from] = { ...stored, arrays: await Stored.arrays(await Stored.bytes(stored.file)) };
        }
        this.writers = writers;
        if (fresh || missing) this.begin();
        return from === this.from;
      } catch (error) {
        this.line.textContent = `The models cannot run here: ${error.message}.`;
        this.coming = null;
        return false;
      }
    }

    /* The writers at work: all, or linear attention alone after a novel. */
    get active() {
      if (!this.from) return this.writers;
      return this.states[this.from] ? this.writers.filter(({ name }) => name === "linear") : [];
    }

    begin() {
      const prompt = this.from ? [] : encoded(this.prompt.value || "\n");
      for (const writer of this.active) writer.begin(prompt, this.seed, this.states[this.from]);
      this.tell();
      this.catchUp();
    }

    /* All read what is there, some milliseconds a frame, so that the page answers meanwhile. */
    async catchUp() {
      do {
        await new Promise(requestAnimationFrame);
        if (this.running && this.speed === "race") return; // frame() reads then
        const end = performance.now() + FRAME;
        for (const writer of this.active) if (performance.now() < end) writer.catchUp(TURN);
      } while (this.active.some(({ behind }) => behind));
      this.show();
    }

    /* Starts again after so many letters of the novel, or with the reader's words. */
    place(letters) {
      if (this.running) this.pause(false);
      this.from = letters;
      this.stations.forEach((button, i) => {
        button.setAttribute("aria-pressed", this.data.stations[i].letters === letters);
      });
      this.begin();
    }

    async start() {
      if (!(await this.ready()) || this.running) return;
      if (this.full()) this.begin();
      this.running = true;
      this.play.textContent = "Pause";
      this.line.setAttribute("aria-live", "off");
      requestAnimationFrame(() => this.frame());
    }

    pause(tell = true) {
      this.running = false;
      this.play.textContent = "Write";
      this.line.setAttribute("aria-live", "polite");
      if (tell) this.tell();
    }

    async step() {
      if (!(await this.ready())) return;
      if (this.running) this.pause();
      if (this.full()) return;
      await this.catchUp();
      for (const writer of this.active) writer.draw(this.temperature);
      this.tell();
    }

    /* Inserts the reader's words into what is written. */
    async interrupt() {
      const words = encoded(this.said.value);
      if (!words.length || !(await this.ready()) || this.full()) return;
      this.said.value = "";
      for (const writer of this.active) writer.hear(words);
      this.show();
      this.catchUp();
      if (!this.running) this.line.textContent = sentence(this.active, this.from);
    }

    full() {
      return this.active.some(({ bytes }) => bytes.length >= MOST);
    }

    /* Between two frames: the writer with less time so far has the next turn, so that all get the
       same. At reading pace each writes a letter when it is due. */
    frame() {
      if (!this.running) return;
      const { active } = this, now = performance.now();
      if (now < this.rested) return requestAnimationFrame(() => this.frame());
      if (now - this.drawn > REDRAWN) this.tell();
      else if (this.speed === "race") {
        do {
          active.reduce((a, b) => (b.spent < a.spent ? b : a)).write(TURN, this.temperature);
        } while (performance.now() < now + FRAME && !this.full());
      } else if (now >= (this.due ?? 0) && !active.some(({ behind }) => behind)) {
        for (const writer of active) writer.write(0, this.temperature);
        this.due = now + READING;
      }
      if (this.full()) return this.pause();
      requestAnimationFrame(() => this.frame());
    }

    tell() {
      this.show();
      this.line.textContent = sentence(this.active, this.from);
    }

    show() {
      const width = this.picture.clientWidth || 600;
      const { active, from, data, prompt: { value } } = this, cost = price(active, data.bills);
      const reached = Math.max(from || encoded(value).length, ...active.map((writer) => writer.reached));
      const softmax = active.find(({ name }) => name === "softmax");
      const far = room(reached, from > 0);
      this.scale.draw(softmax?.reached ?? reached);
      for (const side of this.sides) {
        const writer = active.find(({ name }) => name === side.name);
        if (writer) side.show(writer, this.temperature);
        else side.wait(reached, this.text(side), cost);
      }
      drawChart(this.picture, width, active, data.bills, Math.max(LEAST, far));
      for (const { text } of this.sides) text.scrollTop = text.scrollHeight; // to the last lines
      this.drawn = performance.now();
    }

    /* A side's text before its model is loaded; null: it cannot be loaded. */
    text({ name }) {
      if (!this.from) return this.prompt.value;
      if (name !== "linear") return null;
      const { text } = this.data.stations.find(({ letters }) => letters === this.from);
      return `… ${text}`;
    }
  }

  Stage.mountStored("sampler", (stage, data) => {
    const sampler = new Sampler(stage, data);
    const prompt = Stage.setter((text) => {
      sampler.prompt.value = text;
      sampler.place(0);
    }, () => sampler.prompt.value);
    const letter = Stage.setter((text) => {
      const known = !text || sampler.data.stations.some(({ letters }) => String(letters) === text);
      if (known) sampler.place(Number(text));
      return known;
    }, () => String(sampler.from || ""));
    const temper = Stage.slide(sampler.slider, TEMPERATURES);
    /* Settings from a link are shown. */
    const temperature = (text) => {
      sampler.more.open ||= text !== String(FIRST);
      return temper(text);
    };
    return {
      temperature: [Stage.setter(temperature, temper.now), FIRST],
      prompt: [prompt, sampler.data.prompt],
      speed: [Stage.pick(sampler.speeds), "race"],
      letter: [letter, ""],
    };
  });
}
