"use strict";

/* Loads and stores of a kernel of chunked mode, chunk by chunk, in two designs. One head of
   width 64, chunks of 64 tokens, 16 bits a number, forwards: the account of lsa.cost.design_cost. */

{
  const { element, svg } = Stage;
  const N = 6, C = 64, D = 64, ITEM = 2, WIDTH = 351, CELL = 40, ROW = 17, LEFT = 76, CHIP = 140;
  const NAMES = ["q", "k", "v", "o", "S"];
  const TILE = C * D * ITEM, STATE = D * D * ITEM;

  /* The steps of a design: which tiles are read and which are written, of which chunk. */
  const each = (read, written, launch) => Array.from({ length: N }, (_, n) => ({ n, read, written, launch }));
  const designs = {
    kept: { name: "Keep it on the chip", steps: each(["q", "k", "v"], ["o"], "") },
    stored: {
      name: "Store it after every chunk",
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

  /* The picture: a row of tiles a name in main memory, and a tile a name on the chip. */
  function layOut() {
    const picture = svg("svg", {
      viewBox: `0 0 ${WIDTH} 218`,
      role: "img",
      "aria-label": "Tiles in main memory above, and below them those that are on the chip now",
    });
    picture.append(words(0, 11, "Main memory"), words(0, CHIP - 6, "On the chip"));
    const tiles = {};
    NAMES.forEach((name, row) => {
      picture.append(words(LEFT - 12, 32 + row * ROW, name, 11, "end"));
      tiles[name] = Array.from(
        { length: N },
        (_, n) => svg("rect", { x: LEFT + n * (CELL + 4), y: 20 + row * ROW, width: CELL, height: ROW - 4 }),
      );
      picture.append(...tiles[name]);
    });
    const near = Object.fromEntries(NAMES.map((name, i) => {
      const state = name === "S";
      const rect = svg("rect", {
        x: LEFT + i * (CELL + 4),
        y: CHIP + 8,
        width: state ? 52 : CELL,
        height: state ? 52 : ROW - 4,
      });
      picture.append(
        rect,
        words(LEFT + i * (CELL + 4) + (state ? 26 : CELL / 2), CHIP + (state ? 72 : 32), name, 11, "middle"),
      );
      return [name, rect];
    }));
    return { picture, tiles, near };
  }

  const count = (label) => {
    const value = element("b");
    return { value, group: element("p", {}, element("span", {}, label), value) };
  };

  Stage.mount("chip", (stage) => {
    const { picture, tiles, near } = layOut();
    const total = count("Moved so far"), last = count("In the end, for each token");

    let design = "kept";
    const length = () => designs[design].steps.length;

    function render(step) {
      const plan = designs[design].steps, now = plan[step - 1], done = plan.slice(0, step);
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
          tile.setAttribute("visibility", name === "S" && design === "kept" ? "hidden" : "visible");
        });
        const here = now
          && (now.read.includes(name) || now.written.includes(name) || (name === "S" && design === "kept"));
        near[name].setAttribute(
          "class",
          `chip-tile ${here ? (now.written.includes(name) ? "chip-written" : "chip-read") : ""}`,
        );
      }
      // The kept state fills up: each chunk adds to it.
      const full = design === "kept" ? step / N : 1;
      near.S.setAttribute("fill-opacity", step ? (0.25 + 0.75 * full).toFixed(2) : "1");
      const sum = (steps) => steps.reduce((all, one) => all + bytes(one), 0);
      total.value.textContent = `${(sum(done) / 1024).toLocaleString("en")} KiB`;
      last.value.textContent = `${sum(plan) / (N * C)} B`;
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

    const steps = Stage.stepper({ length, render, say });
    const choice = Stage.radios(
      "The state",
      Object.fromEntries(Object.entries(designs).map(([key, { name }]) => [key, name])),
      design,
      (chosen) => {
        design = chosen;
        steps.show(length());
      },
    );
    stage.append(
      choice,
      picture,
      element("div", { class: "stage-counts" }, total.group, last.group),
      steps.line,
      steps.bar,
    );
    Stage.keys(stage, steps, length);
    steps.show(4);
    return { state: [Stage.pick(choice), "kept"], step: [Stage.whole(steps.show, steps.step, 0, 2 * N), 4] };
  });
}
