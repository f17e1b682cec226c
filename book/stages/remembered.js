"use strict";

/* Pictures of the states of one layer's heads, while a model of writers.js writes. A dot is a
   number: darker is larger, relative to others of its head; negative numbers are grey. */

window.Remembered ??= (() => {
  const { element } = Stage;
  const FULL = 2.5; // the darkest number, in root mean squares

  /* Red, green, blue and opacity of a style's colour in any notation. */
  function colourOf(context, style) {
    context.clearRect(0, 0, 1, 1);
    context.fillStyle = style;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  }

  /* The darkest number, from a sample of some thousands of the numbers. */
  function size(numbers) {
    const stride = 1 + 2 * Math.floor(numbers.length / 2 ** 14);
    let squares = 0, many = 0;
    for (let i = 0; i < numbers.length; i += stride, many++) squares += numbers[i] ** 2;
    return FULL * Math.sqrt(squares / many) || 1;
  }

  /* Draws value(row, column): 1 is the darkest; undefined if there is no number. */
  function paint(canvas, rows, columns, value) {
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const colours = getComputedStyle(canvas);
    Object.assign(canvas, { width: columns, height: rows });
    const above = colourOf(context, colours.getPropertyValue("--side")),
      below = colourOf(context, colours.color);
    const image = context.createImageData(columns, rows);
    for (let r = 0, i = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++, i += 4) {
        const found = value(r, c);
        if (found === undefined) continue;
        image.data.set(found < 0 ? below : above, i);
        image.data[i + 3] *= Math.min(1, Math.abs(found));
      }
    }
    context.putImageData(image, 0, 0);
  }

  const canvas = (label) => element("canvas", { role: "img", "aria-label": label, width: 1, height: 1 });

  /* Pictures by kind of head: {nodes, draw(heads, far)}. heads: their states in one layer; far:
     letters that fit into a cache's picture. */
  const KINDS = {
    softmax() {
      const picture = canvas("Its cache: one more column for every letter");
      function draw(heads, far) {
        const width = heads[0].k.length / heads[0].scores.length, rows = heads.length * 2 * width;
        const length = heads[0].length,
          columns = Math.min(far, Math.round(picture.clientWidth * devicePixelRatio) || 1);
        const parts = heads.flatMap(({ k, v }) => [k, v]).map((
          part,
        ) => [part, size(part.subarray(0, length * width))]);
        paint(picture, rows, columns, (row, column) => {
          const letter = Math.floor((column * far) / columns), [part, most] = parts[Math.floor(row / width)];
          return letter < length ? part[letter * width + (row % width)] / most : undefined;
        });
      }
      return {
        words: "Its cache: a column for each letter",
        look: "kept kept-cache",
        nodes: [picture],
        draw,
      };
    },
    linear() {
      const pictures = ["The state of its near-sighted head", "The state of its far-sighted head"].map(
        canvas,
      );
      function draw(heads) {
        heads.forEach(({ S, z }, head) => {
          const width = z.length, most = size(S);
          paint(pictures[head], width, width, (row, column) => S[row * width + column] / most);
        });
      }
      return { words: "Its states: near head, far head", look: "kept", nodes: pictures, draw };
    },
  };

  /* The part of the page that shows a model's states. */
  function panel(kind, attributes) {
    const { words, look, nodes, draw } = KINDS[kind]();
    const section = element(
      "section",
      attributes,
      element("p", { class: "film-quiet" }, words),
      element("div", { class: look }, nodes),
    );
    return { section, draw };
  }

  return { panel };
})();
