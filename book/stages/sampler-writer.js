"use strict";

/* One of the sampler's two models at work. */

window.SamplerWriter ??= (() => {
  const MOST = 16384; // letters, the prompt's too
  const BUCKET = 128; // letters whose time is one point of the chart

  /* What a model has written, and the time it took. */
  class Writer {
    constructor({ name, slopes }, weights) {
      this.name = name;
      this.machine = Writers.machine(weights, name, slopes);
    }

    begin(prompt, seed) {
      Object.assign(this, {
        state: this.machine.start(),
        bytes: [],
        spent: 0,
        points: [],
        bucket: [0, 0],
        dice: Stage.random(seed),
      });
      for (const byte of prompt) this.read(byte);
      this.prompt = prompt.length;
    }

    read(byte) {
      this.bytes.push(byte);
      this.logits = this.machine.read(this.state, byte);
    }

    /* Write for so many milliseconds, one letter at least. */
    write(milliseconds, temperature) {
      const from = performance.now();
      let letters = 0, now = from;
      do {
        this.read(Writers.drawn(Writers.probabilities(this.logits, temperature), this.dice()));
        letters++;
        now = performance.now();
      } while (now - from < milliseconds && this.bytes.length < MOST);
      this.spent += now - from;
      this.bucket = [this.bucket[0] + letters, this.bucket[1] + now - from];
      if (this.bucket[0] >= BUCKET) {
        this.points.push([this.bytes.length - this.bucket[0] / 2, this.bucket[1] / this.bucket[0]]);
        this.bucket = [0, 0];
      }
    }

    get written() {
      return this.bytes.length - this.prompt;
    }

    /* Milliseconds a letter took lately; null before the first point. */
    get pace() {
      return this.points.length ? this.points.at(-1)[1] : null;
    }
  }

  return { MOST, Writer };
})();
