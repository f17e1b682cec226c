"use strict";

/* One of the sampler's two models at work. */

window.SamplerWriter ??= (() => {
  const MOST = 16384; // letters, the prompt's too
  const BUCKET = 128; // letters whose time is one point of the chart

  /* A model's text, and the time it took. */
  class Writer {
    constructor({ name, slopes }, weights) {
      this.name = name;
      this.machine = Writers.machine(weights, name, slopes);
    }

    /* stored: {letters, text, arrays} of a state to go on from, and the last letters that it read. */
    begin(prompt, seed, stored = null) {
      const { letters: from, text: before, arrays } = stored ?? { letters: 0, text: "" };
      Object.assign(this, {
        from,
        before,
        state: stored ? this.machine.restore(arrays) : this.machine.start(),
        logits: arrays?.logits,
        bytes: [],
        given: [], // of each letter: whether it was read, not written
        written: 0,
        spent: 0,
        points: [],
        bucket: [0, 0],
        dice: Stage.random(seed),
      });
      this.hear(prompt);
    }

    read(byte, given = false) {
      this.bytes.push(byte);
      this.given.push(given);
      this.logits = this.machine.read(this.state, byte);
      if (!given) this.written++;
    }

    /* Take in what somebody else wrote; returns the milliseconds. */
    hear(bytes) {
      const from = performance.now();
      for (const byte of bytes) this.read(byte, true);
      return performance.now() - from;
    }

    /* Write the next letter. */
    draw(temperature) {
      this.read(Writers.drawn(Writers.probabilities(this.logits, temperature), this.dice()));
    }

    /* Write for so many milliseconds, one letter at least. */
    write(milliseconds, temperature) {
      const from = performance.now();
      let letters = 0, now = from;
      do {
        this.draw(temperature);
        letters++;
        now = performance.now();
      } while (now - from < milliseconds && this.bytes.length < MOST);
      this.spent += now - from;
      this.bucket = [this.bucket[0] + letters, this.bucket[1] + now - from];
      if (this.bucket[0] >= BUCKET) {
        this.points.push([this.reached - this.bucket[0] / 2, this.bucket[1] / this.bucket[0]]);
        this.bucket = [0, 0];
      }
    }

    /* The last letter's number, what was read before the page began included. */
    get reached() {
      return this.from + this.bytes.length;
    }

    /* Milliseconds a letter took lately; null before the first point. */
    get pace() {
      return this.points.length ? this.points.at(-1)[1] : null;
    }
  }

  return { MOST, Writer };
})();
