"use strict";

/* Loads and stores of a kernel of chunked mode, chunk by chunk, in two designs. One head of width
   64, chunks of 64 tokens, 16 bits a number, forward pass: lsa.cost.design_cost. */

{
  const { element, svg } = Stage, { grouped: text } = Elements;
  const N = 6, C = 64, D = 64, ITEM = 2, WIDTH = 351, CELL = 50, ROW = 17, LEFT = 30, CHIP = 132, SIDE = 40;
  const NAMES = ["q", "k", "v", "o", "S"];
  const TILE = C * D * ITEM, STATE = D * D * ITEM;

  /* The steps of a design: tiles read and written, and their chunk. */
  const each = (read, written, launch) => Array.from({ length: N }, (_, n) => ({ n, read, written, launch }));
  const designs = {
    kept: { name: "Keep it on the chip", end: "Per token, if kept", steps: each(["q", "k", "v"], ["o"], "") },
    stored: {
      name: "Store it after every chunk",
      end: "Per token, if stored",
      steps: [
        ...each(["k", "v"], ["S"], "First launch, "),
        ...each(["q", "k", "v", "S"], ["o"], "Second launch, "),
      ],
    },
  };
  const bytes = ({ read, written }) =>
    [...read, ...written].reduce((sum, name) => sum + (name === "S" ? STATE : TILE), 0);

  const words = (x, y, text, size = 11, anchor = "start") =>
    svg("text", { x, y, "font-size": size, "text-anchor": anchor }, text);

  /* The picture: for each name a row of tiles in main memory, and one tile on the chip. */
  function layOut() {
    const picture = svg("svg", {
      class: "chip",
      viewBox: `0 0 ${WIDTH} ${CHIP + SIDE + 24}`,
      role: "img",
      "aria-label": "Tiles in main memory above, and below them those that are on the chip now",
    });
    const moves = words(0, CHIP - 9, "", 11, "middle"), tiles = {}, rows = {};
    picture.append(words(0, 11, "Main memory"), words(0, CHIP + 2, "On the chip"), moves);
    NAMES.forEach((name, row) => {
      tiles[name] = Array.from(
        { length: N },
        (_, n) => svg("rect", { x: LEFT + n * (CELL + 4), y: 20 + row * ROW, width: CELL, height: ROW - 4 }),
      );
      rows[name] = svg("g", {}, words(LEFT - 12, 30 + row * ROW, name, 11, "end"), ...tiles[name]);
      picture.append(rows[name]);
    });
    const near = Object.fromEntries(NAMES.map((name, i) => {
      const state = name === "S", x = LEFT + i * (CELL + 4), width = state ? SIDE : CELL;
      const rect = svg("rect", { x, y: CHIP + 8, width, height: state ? SIDE : ROW - 4 });
      picture.append(rect, words(x + width / 2, CHIP + (state ? SIDE + 20 : 34), name, 11, "middle"));
      return [name, rect];
    }));
    return { picture, tiles, rows, near, moves };
  }

  Stage.mount("chip", (stage) => {
    const { picture, tiles, rows, near, moves } = layOut();
    const total = Stage.fact("Moved so far"),
      sum = (steps) => steps.reduce((all, one) => all + bytes(one), 0);
    /* The sums at the end of both designs, whichever is shown. */
    const ends = Object.values(designs).map(({ end, steps }) => {
      const one = Stage.fact(end);
      one.value.textContent = `${text(sum(steps) / (N * C))} B`;
      return one.group;
    });
    const key = Object.entries({ "read now": "read", "written now": "written", "in main memory": "held" })
      .map(([words, css]) =>
        Stage.named(words, [svg("rect", { class: `chip-tile chip-${css}`, width: 22, height: 10 })])
      );

    let design = "kept";
    const length = () => designs[design].steps.length;

    function render(step) {
      const now = designs[design].steps[step - 1], done = designs[design].steps.slice(0, step);
      for (const name of NAMES) {
        tiles[name].forEach((tile, n) => {
          const written = done.some((one) => one.n === n && one.written.includes(name));
          const held = name !== "o" && name !== "S";
          const moving = now?.n === n
            && (now.read.includes(name) ? "read" : now.written.includes(name) ? "written" : "");
          tile.setAttribute(
            "class",
            `chip-tile ${moving ? `chip-${moving}` : held || written ? "chip-held" : ""}`,
          );
        });
        const here = now
          && (now.read.includes(name) || now.written.includes(name) || (name === "S" && design === "kept"));
        near[name].setAttribute(
          "class",
          `chip-tile ${here ? (now.written.includes(name) ? "chip-written" : "chip-read") : ""}`,
        );
      }
      rows.S.setAttribute("visibility", design === "kept" ? "hidden" : "visible");
      moves.setAttribute("x", LEFT + ((now?.n ?? 0) + 0.5) * (CELL + 4));
      moves.textContent = now ? `↓ ${now.read.join(" ")}   ↑ ${now.written}` : "";
      // The state's tile gets darker, since each chunk adds to it.
      const full = design === "kept" ? step / N : 1;
      near.S.setAttribute("fill-opacity", step ? (0.25 + 0.75 * full).toFixed(2) : "1");
      total.value.textContent = `${text(sum(done) / 1024)} KiB`;
    }

    function say(step) {
      const plan = designs[design].steps, now = plan[step - 1];
      if (!now) {
        return design === "kept"
          ? "The state is zero, and on the chip."
          : "Two launches: one makes the states, the other uses them.";
      }
      const list = (names) => names.join(", ").replace(/, (\w)$/, " and $1");
      const added = design === "kept" ? " Then the chunk is added to S, which stays." : "";
      const chunk = `${now.launch}chunk ${now.n + 1} of ${N}`;
      return `${chunk[0].toUpperCase()}${chunk.slice(1)}. Read ${list(now.read)}, write ${
        list(now.written)
      }.${added}`;
    }

    const steps = Stage.stepper(stage, { length, render, say });
    const choice = Stage.radios("The state", designs, design, (chosen) => {
      design = chosen;
      steps.show(length());
    });
    stage.append(
      choice,
      steps.bar,
      steps.line,
      picture,
      element("ul", { class: "lines-names" }, key),
      element("div", { class: "stage-counts" }, total.group, ...ends),
    );
    steps.show(4);
    return { state: [Stage.pick(choice), "kept"], step: [Stage.whole(steps.show, steps.step, 0, 2 * N), 4] };
  });
}
