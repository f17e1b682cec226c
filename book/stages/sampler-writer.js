"use strict";

/* One of the sampler's models while it writes. */

window.SamplerWriter ??= (() => {
  const MOST = 16384; // letters, with the prompt
  const BUCKET = 128; // letters in one point of the chart

  /* A model's text, and the time it took. */
  class Writer {
    constructor(model, weights) {
      this.name = model.name;
      this.machine = Writers.machine(weights, model.name, model.slopes, model);
    }

    /* stored: {letters, text, arrays} of a state to start from, and its last letters. */
    begin(prompt, seed, stored = null) {
      const { letters: from, text: before, arrays } = stored ?? { letters: 0, text: "" };
      Object.assign(this, {
        from,
        before,
        state: stored ? this.machine.restore(arrays) : this.machine.start(),
        logits: arrays?.logits,
        bytes: [],
        done: 0, // letters of it that the model has read
        given: [], // for each letter, whether it was read and not written
        written: 0,
        spent: 0,
        points: [],
        bucket: [0, 0],
        dice: Stage.random(seed),
      });
      this.hear(prompt);
    }

    /* Takes a text that it did not write, to be read next. */
    hear(bytes) {
      this.bytes.push(...bytes);
      this.given.push(...Array(bytes.length).fill(true));
    }

    get behind() {
      return this.done < this.bytes.length;
    }

    read() {
      this.logits = this.machine.read(this.state, this.bytes[this.done++]);
    }

    /* Reads what is there for so many milliseconds, at least one letter. */
    catchUp(milliseconds) {
      const end = performance.now() + milliseconds;
      while (this.behind) {
        this.read();
        if (performance.now() >= end) return;
      }
    }

    /* Writes the next letter. */
    draw(temperature) {
      this.bytes.push(Writers.drawn(Writers.probabilities(this.logits, temperature), this.dice()));
      this.given.push(false);
      this.written++;
      this.read();
    }

    /* Writes for so many milliseconds, at least one letter, once all is read. */
    write(milliseconds, temperature) {
      if (this.behind) return this.catchUp(milliseconds);
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
        this.points.push([this.from + this.done - this.bucket[0] / 2, this.bucket[1] / this.bucket[0]]);
        this.bucket = [0, 0];
      }
    }

    /* The last letter's number, counting those read before the page began. */
    get reached() {
      return this.from + this.bytes.length;
    }

    /* Milliseconds per letter in the last point; null before the first. */
    get pace() {
      return this.points.length ? this.points.at(-1)[1] : null;
    }
  }

  return { MOST, Writer };
})();
