"use strict";

/* Memory to scale: linear attention's state and a window as dots, and softmax's cache, which grows
   with the letters read and, after a million, covers the page. */

window.SamplerScale ??= (() => {
  const { element, svg } = Stage;
  const { count } = SamplerChart;
  const NARROW = 420, LINE = 18, GAP = 4, HEAD = 62; // px

  const bytesText = (n) => {
    const power = n < 2 ** 20 ? 1 : n < 2 ** 30 ? 2 : 3;
    return `${Number((n / 2 ** (10 * power)).toPrecision(3))} ${["KiB", "MiB", "GiB"][power - 1]}`;
  };

  class Scale {
    /* stage: its width limits the picture; state, ring: bytes of linear attention's state and of
       the window; row: of a letter in the cache; stations: letters at which the cache is outlined. */
    constructor(stage, { state, ring, row, stations }) {
      Object.assign(this, { stage, state, ring, row, stations });
      this.picture = svg("svg", { class: "sampler-outlines", role: "img" });
      this.cache = element("div", { class: "sampler-cache film-softmax", "aria-hidden": "true" });
      this.cache.style.top = `${HEAD}px`;
      this.node = element("div", { class: "sampler-scale" }, this.picture, this.cache);
    }

    /* letters: the number of letters in softmax attention's cache. */
    draw(letters) {
      const { stage, state, ring, row, stations, picture } = this;
      if (this.whole !== stage.clientWidth) this.outline(stage.clientWidth);
      const told = stations.map((n) => `${bytesText(n * row)} after ${count(n)}`).join(", ");
      picture.setAttribute(
        "aria-label",
        `Memory, drawn to scale. Linear keeps ${bytesText(state)} and the window ${bytesText(ring)}, always. `
          + `Softmax keeps ${bytesText(letters * row)} after ${count(letters)} letters; ${told}.`,
      );
      this.grow(this.side(letters));
    }

    side(letters) {
      return (this.whole < NARROW ? 4 : 5) * Math.sqrt((letters * this.row) / this.state);
    }

    /* What stays as the text grows. whole: the stage's width. */
    outline(whole) {
      Object.assign(this, { whole });
      const { state, ring, row, stations, picture } = this, side = (n) => this.side(n);
      const inside = stations.slice(0, -1), most = this.most = side(inside.at(-1)), x = most + GAP;
      const label = (y, words, at = x) => svg("text", { class: "lines-tick", x: at, y }, words);
      const lead = (at, y) => svg("path", { class: "lines-grid", d: `M${at} ${y}H${x - 3}` });
      const always = (css, name, size, y) => {
        const wide = side(size / row);
        return [
          svg("rect", { class: `film-${css} sampler-state`, y: y - wide / 2, width: wide, height: wide }),
          svg("path", { class: "sampler-arrow", d: `M34 ${y}H${wide + 5}m5 -4l-5 4l5 4` }),
          svg(
            "text",
            { class: `sampler-label film-${css}`, x: 40, y: y + 4 },
            `${name}: ${bytesText(size)}, always`,
          ),
        ];
      };
      picture.style.height = `${HEAD + most + LINE + 4}px`;
      picture.replaceChildren(
        ...always("linear", "Linear", state, 9),
        ...always("window", "Window", ring, 27),
        svg("text", { class: "sampler-label film-softmax", y: 54 }, "Softmax, by letters:"),
        svg(
          "g",
          { transform: `translate(0 ${HEAD})` },
          ...inside.map((n) =>
            svg("rect", { class: "film-softmax sampler-outline", width: side(n), height: side(n) })
          ),
          ...inside.flatMap((n) => [
            lead(side(n), side(n)),
            label(side(n) + 4, `${count(n)}: ${bytesText(n * row)}`),
          ]),
          label(
            most + LINE,
            `${count(stations.at(-1))}: ${bytesText(stations.at(-1) * row)}, over this page`,
            0,
          ),
        ),
      );
    }

    /* The cache at present: a square, or as wide as the stage and higher. */
    grow(side) {
      const { node, cache, most, whole } = this;
      const wide = Math.min(side, whole), over = side > most + 1;
      const below = over
        ? document.body.getBoundingClientRect().bottom - node.getBoundingClientRect().top - HEAD
        : side;
      const high = Math.min((side * side) / wide, below);
      Object.assign(cache.style, { width: `${wide}px`, height: `${high}px` });
      cache.classList.toggle("sampler-over", over);
    }
  }

  return { Scale, bytesText };
})();
