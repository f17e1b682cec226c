"use strict";

/* The parts of the page for one of the sampler's writers. */

window.SamplerSide ??= (() => {
  const { element } = Stage;
  const { COLOURS, NAMES, count, digits, work } = SamplerChart;
  const { bytesText } = SamplerScale;
  const SHOWN = 280, LIKELY = 5; // letters, next letters

  const readable = (text) => text.replace(/\n/g, " ↵ ").replace(/[\u0000-\u001f\u007f-\u009f]/g, "\ufffd");
  const plain = (byte) => byte > 32 && byte < 127 ? String.fromCharCode(byte) : `byte ${byte}`;
  const letterName = (byte) => ({ 10: "↵", 32: "space" }[byte] ?? plain(byte));

  const clean = (bytes) => readable(new TextDecoder().decode(Uint8Array.from(bytes)));

  /* The last words of a writer's text; those that were given to it are slanted. */
  function words({ bytes, given, before }) {
    const from = Math.max(0, bytes.length - SHOWN), parts = [];
    for (let i = from; i < bytes.length; i++) {
      if (i === from || given[i] !== given[i - 1]) parts.push([given[i], []]);
      parts.at(-1)[1].push(bytes[i]);
    }
    const cut = from || before ? "… " : "";
    const read = (text) => element("i", { class: "sampler-given" }, text);
    const earlier = from ? "" : readable(before).slice(Math.min(0, bytes.length - SHOWN));
    return [
      cut,
      bytes.length < SHOWN && earlier ? read(earlier) : null,
      ...parts.map(([heard, one]) => (heard ? read(clean(one)) : clean(one))),
    ].filter((part) => part !== null);
  }

  /* The likeliest letters, [[letter, share]], in order; and bars of them. */
  const likeliest = (shares) => [...shares.entries()].sort(([, a], [, b]) => b - a).slice(0, LIKELY);
  const bars = (likely) => Likely.bars(likely.map(([byte, share]) => [letterName(byte), share]));

  const DAY = 24 * 60 * 60 * 1000;
  const UNITS = [["days", DAY], ["hours", DAY / 24], ["min", 60000], ["s", 1000], ["ms", 0]];
  const timeText = (ms) => {
    const [name, size] = UNITS.find(([, size]) => ms >= 2 * size);
    return `${digits(ms / (size || 1))} ${name}`;
  };

  /* Memory and time that softmax would need after so many letters that it has not read. price:
     milliseconds of a multiply-add, or null. */
  function missing(letters, { bills: { softmax, linear }, row }, price) {
    const next = work(softmax, letters), kept = bytesText(row * letters), times = digits(next / linear[0]);
    const all = letters * softmax[0] + softmax[1] * letters * letters / 2;
    const cache = `It would need the keys and values of all ${count(letters)} letters: ${kept}.`;
    const more = `By the formula, its next letter is ${times} times as much work as linear’s`;
    if (price === null) return `It cannot begin here. ${cache} ${more}.`;
    return `It cannot begin here. ${cache} ${more}: ${timeText(next * price)} on this device. Reading `
      + `all letters up to here would take it ${timeText(all * price)}, and linear `
      + `${timeText(letters * linear[0] * price)}.`;
  }

  /* What a window would need, after any number of letters. */
  const windowed = ({ window }, ring) =>
    `No cache of it is stored here. It would keep the last ${count(window)} letters and the first, `
    + `${bytesText(ring)}, however long the text.`;

  class Side {
    constructor(model, data) {
      const { name } = model, css = COLOURS[name];
      Object.assign(this, { name, model, data });
      this.text = element("p", { class: "film-text sampler-text", dir: "ltr" });
      this.facts = ["At letter", "Per letter", "Memory"].map(Stage.fact);
      this.likely = element("ol", { class: "sampler-likely" });
      this.writing = element(
        "section",
        { class: `film-writing ${css}`, "aria-label": `${NAMES[name]} writes` },
        element("p", { class: "film-name" }, NAMES[name]),
        this.text,
        element("div", { class: "stage-counts sampler-facts" }, this.facts.map(({ group }) => group)),
      );
      this.next = element(
        "section",
        { class: css, "aria-label": `${NAMES[name]}, its next letter` },
        element("p", { class: "film-quiet" }, "Its next letter"),
        this.likely,
      );
    }

    /* Without a writer: what it would be given or need after so many letters. */
    wait(letters, text, price) {
      const gone = text === null, { name, model, data } = this, { row, ring, state } = data;
      const far = () => name === "window" ? windowed(model, ring) : missing(letters, data, price);
      this.text.replaceChildren(gone ? far() : text);
      const kept = { linear: state, window: ring }[name] ?? row * letters;
      const time = gone && price !== null ? timeText(work(data.bills[name], letters) * price) : "–";
      this.tell(letters, time, kept, gone);
      this.next.classList.toggle("sampler-gone", gone);
    }

    show(writer, temperature) {
      this.text.replaceChildren(...words(writer));
      this.tell(
        writer.reached,
        writer.pace ? timeText(writer.pace) : "–",
        4 * writer.machine.kept(writer.reached),
      );
      this.next.classList.remove("sampler-gone");
      if (writer.behind) return;
      const shares = Writers.probabilities(writer.logits, temperature || 1);
      this.likely.replaceChildren(...bars(likeliest(shares)));
    }

    tell(letters, time, kept, predicted = false) {
      this.text.classList.toggle("sampler-missing", predicted);
      const told = [count(letters), time, bytesText(kept)];
      this.facts.forEach(({ value }, i) => {
        value.textContent = told[i];
      });
      this.facts[1].name.textContent = predicted ? "Predicted" : "Per letter";
    }
  }

  function sentence(writers, from) {
    if (!writers.some(({ written, spent }) => written || spent)) {
      return from ? `Linear has read ${count(from)} letters of a novel.` : "Nothing is written yet.";
    }
    const told = writers.map(({ name, written, pace }) => {
      const lately = pace ? `, lately at ${timeText(pace)} each` : "", plural = written === 1 ? "" : "s";
      return `${NAMES[name].toLowerCase()} has written ${count(written)} letter${plural}${lately}`;
    });
    const spent = Math.max(...writers.map((writer) => writer.spent)) / 1000;
    const each = writers.length > 1 ? " each" : "";
    return `In ${digits(spent)} s${each}: ${told.join("; ")}.`;
  }

  return { Side, bars, clean, likeliest, sentence };
})();
