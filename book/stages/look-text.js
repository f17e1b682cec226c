"use strict";

/* The page of text of `look-inside`: a word for each token, shaded by how much a head looks at it.
   Below each word of the returning passage are the guesses for it. */

window.LookText ??= (() => {
  const { element, svg } = Stage;
  const shown = (text) => text.replace(/\n/g, "↵").replace(/\ufffd/g, "·");
  const quoted = (text) => `“${shown(text).trim() || "space"}”`;
  const spaced = (text) => text.startsWith(" ");

  /* An arrow over `holder` from one of its nodes to another, in the space above the lines. */
  class Arrow {
    constructor(holder) {
      this.holder = holder;
      this.path = svg("path");
      this.node = svg("svg", { class: "look-arrow", "aria-hidden": "true" }, this.path);
    }

    draw(from, to) {
      this.ends = [from, to];
      if (!to || !this.isLaidOut) return this.path.setAttribute("d", "");
      const around = this.holder.getBoundingClientRect();
      this.node.setAttribute("viewBox", `0 0 ${around.width} ${around.height}`);
      const middle = (node) => {
        const { left, top, width, height } = node.getBoundingClientRect();
        return [left - around.left + width / 2, top - around.top, height];
      };
      const [x1, y1] = middle(from), [x2, y2, high] = middle(to), end = y2 + high + 1;
      const bend = Math.max(14, (y1 - end) / 3);
      this.path.setAttribute(
        "d",
        `M${x1} ${y1}C${x1} ${y1 - bend} ${x2} ${end + bend} ${x2} ${end + 1}m-4 6l4 -6l4 6`,
      );
    }
  }

  const STRONG = 0.1; // weights that are also marked without colour

  class Reading {
    /* first: tokens that a confined head sees on every page. choose(i): called for a pressed word.
       peek(i): for a word under the mouse, null when the mouse leaves it. */
    constructor(first, choose, peek) {
      Object.assign(this, { first, choose, peek });
      this.node = element("div", { class: "look-text", onpointerleave: () => peek(null) });
      this.arrow = new Arrow(this.node);
      this.key = element("span");
      new ResizeObserver(() => {
        this.arrow.isLaidOut = true;
        this.arrow.draw(...(this.arrow.ends ?? []));
      }).observe(this.node);
    }

    /* Lays out another page. */
    lay({ tokens, passage: [first, again, length] }) {
      this.passage = tokens.slice(again);
      this.words = tokens.map((text, i) =>
        element("span", {
          class: i >= first && i < first + length ? "look-word look-passage" : "look-word",
          onclick: () => this.choose(i),
          onpointerenter: ({ pointerType }) => pointerType === "mouse" && this.peek(i),
        }, shown(text.replace(/^ /, "")) || "␣")
      );
      this.guessed = this.passage.map(() => [0, 1].map(() => element("i", {}, "\u00a0")));
      const cells = this.passage.map((text, i) =>
        element(
          "span",
          { class: spaced(text) ? "look-cell look-spaced" : "look-cell" },
          this.words[again + i],
          element("span", { class: "look-guesses", "aria-hidden": "true" }, this.guessed[i]),
        )
      );
      const line = (...words) => element("p", { class: "look-label" }, ...words);
      this.node.replaceChildren(
        line(
          "The page. Its underlined words come again at the end. "
            + `┊: a confined head sees from here on, and the first ${this.first} tokens.`,
        ),
        // The space is before a word, not in it, so that lines can break there.
        element(
          "p",
          { class: "look-page" },
          this.words.slice(0, again).flatMap((node, i) =>
            spaced(tokens[i]) || tokens[i - 1] === "\n" ? [" ", node] : [node]
          ),
        ),
        line("They come again. Below each, its guess: ", this.key),
        element("p", { class: "look-page look-again" }, cells),
        this.arrow.node,
      );
    }

    /* Shows the view from a word: found, {place: weight}; most, the place of the arrow's end, or
       null; edge, where the window of a confined head begins. */
    mark(word, { found, most, edge }) {
      this.words.forEach((node, i) => {
        const weight = found.get(i) ?? 0;
        node.style.setProperty("--weight", weight.toFixed(3));
        node.classList.toggle("look-strong", weight >= STRONG);
        node.classList.toggle("look-read", i === word);
        node.classList.toggle("look-wanted", i === word + 1);
        node.classList.toggle("look-edge", i > 0 && i === edge);
      });
      this.arrow.draw(this.words[word], most === null ? null : this.words[most]);
    }

    /* Shows the guesses for each word of the passage: guess(which, i), with all heads free (0) and
       with some confined (1), which `words` name. */
    guess(words, guess) {
      this.key.textContent = `with all heads free, then with ${words}. ✓: right.`;
      this.guessed.forEach((cells, i) =>
        cells.forEach((cell, which) => {
          const text = guess(which, i), right = text === this.passage[i];
          cell.textContent = right ? "✓" : shown(text).trim() || "␣";
          cell.className = right ? "look-right" : "look-wrong";
        })
      );
    }
  }

  /* The likeliest words, [[text, share]], as a list below their word. */
  class Likeliest {
    constructor() {
      this.name = element("p", { class: "film-quiet" });
      this.list = element("ol", { class: "sampler-likely look-likely" });
      this.node = element("div", {}, this.name, this.list);
    }

    draw(name, best) {
      this.name.textContent = name;
      this.list.replaceChildren(...Likely.bars(best.map(([text, share]) => [shown(text), share])));
    }
  }

  return { Likeliest, Reading, quoted };
})();
