"use strict";

/* Pictures of `look-inside`: all heads as small squares, and the number of right guesses against
   the number of confined heads. */

window.LookPictures ??= (() => {
  const { element, svg } = Stage;
  const LARGEST = 24, LEFT = 16, AXIS = 18; // px: a square, room for head numbers, for layer numbers
  const NARROW = 500; // px: below, the layers are in two rows

  /* All heads as squares, with a column for each layer. Orange: the head's effect on recall.
     Inside: where it looks from the returning passage (down) at the first copy (across).
     choose(layer, head). */
  class Grid {
    constructor({ shape: [layers, heads], heads: ranked }, choose) {
      Object.assign(this, { layers, heads, ranked });
      this.most = Math.max(...ranked.map(([, , brings]) => brings));
      this.canvas = element("canvas", {
        class: "look-grid",
        role: "img",
        "aria-label": `The ${layers * heads} heads by layer and head. A few squares of the middle layers are `
          + "orange and show a diagonal: these heads find the passage's first copy. The list of heads "
          + "opens them too.",
        onclick: (event) => {
          const found = this.at(event);
          if (found) choose(...found);
        },
        onpointermove: (event) => this.canvas.title = this.at(event)?.join(".") ?? "",
      });
      new ResizeObserver(() => {
        this.isLaidOut = true;
        if (this.shown) this.draw(this.shown);
      }).observe(this.canvas);
    }

    lay() {
      const width = this.canvas.clientWidth, bands = width < NARROW ? 2 : 1;
      this.columns = Math.ceil(this.layers / bands);
      this.size = Math.min(LARGEST, (width - LEFT) / this.columns);
      this.band = this.heads * this.size + AXIS;
      return [width, bands * this.band];
    }

    corner(layer, head) {
      const band = Math.floor(layer / this.columns);
      const up = this.heads - 1 - head; // as in the chart of all heads, the first is lowest
      return [LEFT + (layer % this.columns) * this.size, band * this.band + up * this.size];
    }

    /* Layer and head at the pressed point of the picture. */
    at({ offsetX, offsetY }) {
      const column = Math.floor((offsetX - LEFT) / this.size), band = Math.floor(offsetY / this.band);
      const layer = band * this.columns + column;
      const head = this.heads - 1 - Math.floor((offsetY % this.band) / this.size);
      return column >= 0 && column < this.columns && layer < this.layers && head >= 0 ? [layer, head] : null;
    }

    /* open: [layer, head]. confined: names of heads. dots(layer, head): [[row, column, weight]] of
       a square, in shares of its side; null if nothing is loaded. side: of a dot. */
    draw(shown) {
      this.shown = shown;
      if (!this.isLaidOut) return;
      const { canvas } = this, [width, height] = this.lay(), ratio = window.devicePixelRatio || 1;
      canvas.style.height = `${height}px`;
      Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
      const context = canvas.getContext("2d"), style = getComputedStyle(canvas);
      const ink = style.color, hue = style.getPropertyValue("--softmax");
      context.scale(ratio, ratio);
      for (const [layer, head, brings] of this.ranked) {
        this.square(context, layer, head, Math.sqrt(Math.max(0, brings) / this.most), { ...shown, ink, hue });
      }
      this.frame(context, shown.open, ink, 3.2);
      this.numbers(context, ink, style.fontFamily);
    }

    square(context, layer, head, strength, { confined, dots, side, ink, hue }) {
      const [x, y] = this.corner(layer, head), inner = this.size - 2;
      context.globalAlpha = 0.07;
      context.fillStyle = ink;
      context.fillRect(x, y, inner, inner);
      context.globalAlpha = strength;
      context.fillStyle = hue;
      context.fillRect(x, y, inner, inner);
      context.fillStyle = ink;
      for (const [row, column, weight] of dots?.(layer, head) ?? []) {
        context.globalAlpha = Math.min(1, 1.6 * weight);
        context.fillRect(
          x + column * inner,
          y + row * inner,
          Math.max(1, side * inner),
          Math.max(1, side * inner),
        );
      }
      if (confined.has(`${layer}.${head}`)) this.frame(context, [layer, head], ink, 1.2);
    }

    frame(context, place, ink, lineWidth) {
      const [x, y] = this.corner(...place), out = lineWidth / 2, side = this.size - 2 + lineWidth;
      Object.assign(context, { globalAlpha: 1, strokeStyle: ink, lineWidth });
      context.strokeRect(x - out, y - out, side, side);
    }

    numbers(context, ink, fontFamily) {
      Object.assign(context, { globalAlpha: 0.76, fillStyle: ink, font: `11px ${fontFamily}` });
      context.textAlign = "center";
      for (let layer = 0; layer < this.layers; layer += 3) {
        const [x, y] = this.corner(layer, -1);
        context.fillText(layer || "layer 0", x + (this.size - 2) / 2 + (layer ? 0 : 10), y + 11);
      }
      context.textAlign = "right";
      for (let head = 0; head < this.heads; head += 2) {
        for (let layer = 0; layer < this.layers; layer += this.columns) {
          const [x, y] = this.corner(layer, head);
          context.fillText(head, x - 5, y + this.size / 2 + 3);
        }
      }
    }
  }

  const HEIGHT = 96, BOTTOM = 20, TOP = 8, RIGHT = 8, SIDE = 24;

  /* Right guesses against heads confined: points [[heads, right]], and the number of guesses. The
     last point is that of all heads, apart from the line. */
  class Curve {
    constructor(of) {
      this.of = of;
      this.node = svg("svg", {
        class: "look-curve",
        role: "img",
        "aria-label": "Guesses that are right against the number of heads confined: they fall steeply.",
      });
      new ResizeObserver(() => {
        this.isLaidOut = true;
        if (this.shown) this.draw(...this.shown);
      }).observe(this.node);
    }

    draw(points, once, now) {
      this.shown = [points, once, now];
      if (!this.isLaidOut) return;
      const width = Math.max(180, this.node.clientWidth), last = points.length + 2;
      const x = (i) => SIDE + ((width - SIDE - RIGHT) * (i === points.length - 1 ? last : i)) / last;
      const y = (right) => HEIGHT - BOTTOM - ((HEIGHT - BOTTOM - TOP) * right) / this.of;
      const label = (at, down, anchor, words) =>
        svg("text", { x: at, y: down, "text-anchor": anchor }, words);
      const here = points.findIndex(([heads]) => heads === now);
      this.node.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
      this.node.replaceChildren(
        ...[0, this.of].flatMap((right) => [
          svg("path", { class: "look-axis", d: `M${SIDE} ${y(right)}H${width - RIGHT}` }),
          label(SIDE - 5, y(right) + 4, "end", right),
        ]),
        svg("path", { class: "look-once", d: `M${SIDE} ${y(once)}H${width - RIGHT}` }),
        label(width - RIGHT, y(once) - 5, "end", `the first time: ${once}`),
        svg("path", {
          class: "look-falls",
          d: points.slice(0, -1).map(([, right], i) => `${i ? "L" : "M"}${x(i).toFixed(1)} ${y(right)}`).join(
            "",
          ),
        }),
        svg("circle", { class: "look-end", cx: x(points.length - 1), cy: y(points.at(-1)[1]), r: 3 }),
        here < 0 ? null : svg("circle", { class: "look-now", cx: x(here), cy: y(points[here][1]), r: 5 }),
        ...[0, 8, 16, 24, 32].map((heads) => label(x(heads), HEIGHT - 5, "middle", heads)),
        label(width, HEIGHT - 5, "end", "all"),
      );
    }
  }

  return { Curve, Grid };
})();
