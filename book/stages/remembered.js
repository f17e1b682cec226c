"use strict";

/* Pictures of what the heads of one layer keep while a model of writers.js writes: a dot a number.
   Darker is larger for its kind; below zero is grey. */

window.Remembered ??= (() => {
  const { element } = Stage;
  const FULL = 2.5;  // root mean squares of a number that is drawn darkest

  const colourOf = (text) => text.match(/[\d.]+/g).slice(0, 3).map(Number);

  /* Draw value(row, column), which is undefined where there is no number. */
  function paint(canvas, rows, columns, value) {
    const context = canvas.getContext("2d");
    const { color, outlineColor } = getComputedStyle(canvas);
    const above = colourOf(color), below = colourOf(outlineColor);
    Object.assign(canvas, { width: columns, height: rows });
    const image = context.createImageData(columns, rows), dots = new Float32Array(rows * columns).fill(NaN);
    let squares = 0, many = 0;
    for (let r = 0, i = 0; r < rows; r++) {
      for (let c = 0; c < columns; c++, i++) {
        const found = value(r, c);
        if (found === undefined) continue;
        dots[i] = found;
        squares += found * found;
        many++;
      }
    }
    const most = FULL * Math.sqrt(squares / Math.max(many, 1)) || 1;
    dots.forEach((dot, i) => {
      if (Number.isNaN(dot)) return;
      image.data.set(dot < 0 ? below : above, 4 * i);
      image.data[4 * i + 3] = 255 * Math.min(1, Math.abs(dot) / most);
    });
    context.putImageData(image, 0, 0);
  }

  const canvas = (label) => element("canvas", { role: "img", "aria-label": label, width: 1, height: 1 });

  /* Pictures by kind of head: {nodes, draw(heads, far)}; heads are the states of one layer's, far
     the letters that a cache's picture has room for. */
  const KINDS = {
    softmax() {
      const picture = canvas("Its cache: a column more with every letter");
      function draw(heads, far) {
        const width = heads[0].k.length / heads[0].scores.length, rows = heads.length * 2 * width;
        const parts = heads.flatMap(({ k, v }) => [k, v]);
        const columns = Math.min(far, Math.round(picture.clientWidth * devicePixelRatio) || 1);
        paint(picture, rows, columns, (row, column) => {
          const letter = Math.floor((column * far) / columns);
          return letter < heads[0].length ? parts[Math.floor(row / width)][letter * width + (row % width)] : undefined;
        });
      }
      return { words: "Its cache: keys and values, a column a letter", nodes: [picture], draw };
    },
    linear() {
      const pictures = ["The state of its near-sighted head", "The state of its far-sighted head"].map(canvas);
      function draw(heads) {
        heads.forEach(({ S, z }, head) => {
          const width = z.length;
          paint(pictures[head], width, width, (row, column) => S[row * width + column]);
        });
      }
      return { words: "Its states: of the near-sighted head, and of the far-sighted", nodes: pictures, draw };
    },
  };

  /* The part of the page that shows what a model keeps. */
  function panel(kind, attributes) {
    const { words, nodes, draw } = KINDS[kind]();
    const section = element("section", attributes,
      element("p", { class: "film-quiet" }, words), element("div", { class: `kept kept-${kind}` }, nodes));
    return { section, draw };
  }

  return { panel };
})();
