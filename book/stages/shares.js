"use strict";

/* All texts of three tokens on one line, divided row by row. The width of a piece is the
   probability of all texts that begin with its letters. The model is the chapter's. */

{
  const { element, svg } = Stage;
  const LETTERS = ["a", "b", "c"], DEPTH = 3, WIDTH = 351, TOP = 14, HEIGHT = 30, ROW = 36;
  const ROWS = { "": [0.6, 0.3, 0.1], a: [0.5, 0.5, 0], b: [0.1, 0.3, 0.6], c: [0.2, 0.2, 0.6] };
  const g = (prefix) => ROWS[prefix.at(-1) ?? ""];

  /* Pieces of a row: text, start on the line, and width. */
  const rows = [[{ text: "", left: 0, mass: 1 }]];
  for (let i = 0; i < DEPTH; i++) {
    rows.push(rows[i].flatMap(({ text, left, mass }) =>
      LETTERS.map((letter, j) => {
        const share = mass * g(text)[j], piece = { text: text + letter, left, mass: share };
        left += share;
        return piece;
      })
    ));
  }

  Stage.mount("shares", (stage) => {
    const picture = svg("svg", {
      viewBox: `0 0 ${WIDTH} ${TOP + DEPTH * ROW + HEIGHT + 2}`,
      role: "img",
      "aria-label":
        "A line from 0 to 1, cut into shares: by the first letter, then by the second, then by the third",
    });
    const pieces = rows.map((row, i) =>
      row.filter(({ mass }) => mass > 0).map((piece) => {
        const x = piece.left * WIDTH, width = piece.mass * WIDTH, y = TOP + i * ROW;
        const name = piece.text || "all texts";
        const group = svg("g", {}, svg("rect", { x, y, width, height: HEIGHT }));
        // Only names that fit.
        if (width > 7 * name.length + 3) {
          group.append(
            svg("text", { x: x + width / 2, y: y + 19, "text-anchor": "middle", "font-size": 11 }, name),
          );
        }
        picture.append(group);
        return { ...piece, group };
      })
    );
    const mark = svg("path", { class: "shares-mark" }),
      label = svg("text", { y: 9, "text-anchor": "middle", "font-size": 10 });
    picture.append(mark, label);

    let seed = 3;
    const draw = () => Stage.random(7919 * seed++)();
    let u = draw();
    const under = (i) => pieces[i].find(({ left, mass }) => left <= u && u < left + mass) ?? pieces[i].at(-1);

    function render(n) {
      pieces.forEach((row, i) =>
        row.forEach(({ group, text }) => {
          group.setAttribute("visibility", i <= n ? "visible" : "hidden");
          group.setAttribute("class", `shares-piece${text === under(i).text ? " shares-here" : ""}`);
        })
      );
      // A tick in each row, so that no name is crossed.
      mark.setAttribute(
        "d",
        rows.slice(0, n + 1).map((_, i) => `M${u * WIDTH} ${TOP + i * ROW - 3}v9`).join(""),
      );
      label.setAttribute("x", Math.max(20, Math.min(WIDTH - 20, u * WIDTH)));
      label.textContent = `u = ${u.toFixed(3)}`;
    }

    function say(n) {
      if (!n) {
        return `A point u = ${u.toFixed(3)} falls on the line. The line is not cut yet.`;
      }
      const before = under(n - 1), piece = under(n);
      const shares = LETTERS.map((letter, j) => `${letter} ${g(before.text)[j]}`).join(", ");
      const after = before.text ? `After ${before.text}` : "At the start";
      return `${after} the shares are ${shares}. The point is in ${piece.text}, which has probability ${
        piece.mass.toFixed(3)
      }.`
        + (n === DEPTH ? " That is the text drawn." : "");
    }

    const steps = Stage.stepper(stage, { length: () => DEPTH, render, say, milliseconds: 1200 });
    const again = Stage.button("New draw", () => {
      u = draw();
      steps.show(DEPTH);
    });
    stage.append(picture, steps.line, element("div", { class: "stage-row" }, steps.bar, again));
    steps.show(DEPTH);
    return { step: [Stage.whole(steps.show, steps.step, 0, DEPTH), DEPTH] };
  });
}
