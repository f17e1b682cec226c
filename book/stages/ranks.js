"use strict";

/* A text over four ranks: what travels between them until everybody has read what is before its
   part. One head of width 64; bytes are those of lsa.cost.state_exchange and key_exchange. */

{
  const { element, svg } = Stage;
  const P = 4, D = 64, WIDTH = 351, TOP = 24, ROW = 34, CELL = 30, LEFT = 128, READ = 300;
  const PIECES = ["It was a brigh", "t cold day in ", "April, and the", " clocks were s"];
  const STATE = 4 * D * (D + 1); // B of S and z, float32
  const PAIR = 2 * 2 * D; // B of a token's key and value, 16 bits a number
  const RANKS = [0, 1, 2, 3];
  const WAYS = { gather: "States, at once", scan: "States, scanned", ring: "Keys and values" };

  const before = (r) => RANKS.slice(0, r);
  /* The parts that each rank has of the others after each exchange, as lists of ranks. */
  const exchanges = {
    gather: [RANKS.map(before)],
    scan: [RANKS.map((r) => before(r).slice(-1)), RANKS.map((r) => before(r).slice(-2)), RANKS.map(before)],
    ring: [1, 2, 3].map((n) => RANKS.map((r) => RANKS.slice(1, n + 1).map((by) => (r - by + P) % P))),
  };
  /* B that the last rank receives in one exchange. An all-gather brings the states of all others. */
  const received = (way, tokens) => ({ gather: (P - 1) * STATE, scan: STATE, ring: tokens * PAIR })[way];

  const words = (x, y, text, anchor = "start") =>
    svg("text", { x, y, "font-size": 11, "text-anchor": anchor }, text);

  function layOut() {
    const picture = svg("svg", {
      class: "ranks",
      viewBox: `0 0 ${WIDTH} ${TOP + P * ROW}`,
      role: "img",
      "aria-label":
        "Four rows, one for each rank: its part of the text, and the ranks whose states or keys it has",
    });
    picture.append(
      words(0, 12, "Rank"),
      words(LEFT - 10, 12, "from rank", "end"),
      ...RANKS.map((j) => words(LEFT + j * (CELL + 6) + CELL / 2, 12, `${j}`, "middle")),
      words(READ + CELL / 2, 12, "text read", "middle"),
    );
    const rows = RANKS.map((r) => {
      const y = TOP + r * ROW;
      const cells = RANKS.map((j) =>
        svg("rect", { x: LEFT + j * (CELL + 6), y, width: CELL, height: CELL - 6 })
      );
      const out = svg("rect", { x: READ, y, width: CELL, height: CELL - 6 });
      picture.append(words(0, y + 16, `${r}`), words(14, y + 16, PIECES[r]), ...cells, out);
      return { cells, out };
    });
    return { picture, rows };
  }

  Stage.mount("ranks", (stage) => {
    const { picture, rows } = layOut();
    const total = Stage.fact("Received by the last rank so far");
    const ends = {
      gather: Stage.fact("Last rank, in all: states"),
      ring: Stage.fact("Last rank, in all: keys and values"),
    };
    const names = Object.entries({ "its own": "own", "just received": "moving", "received before": "held" })
      .map(([words, css]) =>
        Stage.named(words, [svg("rect", { class: `ranks-cell ranks-${css}`, width: 22, height: 10 })])
      );
    const LENGTHS = [16, 65, 1024, 16384];
    let way = "gather", tokens = 1024;
    const length = () => exchanges[way].length + (way === "ring" ? 1 : 2);
    const kilobytes = (bytes) => `${Elements.grouped(bytes / 1000)} kB`;

    /* The status line of a step. A ring reads as it goes; states are read in the end. */
    function at(step) {
      const done = Math.max(0, Math.min(step - 1, exchanges[way].length));
      const own = step > 0;
      const has = done ? exchanges[way][done - 1] : RANKS.map(() => []);
      const had = done > 1 ? exchanges[way][done - 2] : RANKS.map(() => []);
      const moves = done && step === done + 1;
      return { done, own, has, had: moves ? had : has };
    }

    function render(step) {
      const { done, own, has, had } = at(step);
      rows.forEach(({ cells, out }, r) => {
        cells.forEach((cell, j) => {
          const held = j === r ? own : has[r].includes(j);
          const arrived = had[r].includes(j) ? "ranks-held" : "ranks-moving";
          cell.setAttribute("class", `ranks-cell ${!held ? "" : j === r ? "ranks-own" : arrived}`);
        });
        const complete = before(r).every((j) => has[r].includes(j));
        const read = way === "ring" ? own && complete : step === length();
        out.setAttribute("class", `ranks-cell ${read ? "ranks-own" : ""}`);
      });
      total.value.textContent = kilobytes(done * received(way, tokens));
      for (const [one, { value }] of Object.entries(ends)) {
        value.textContent = kilobytes(exchanges[one].length * received(one, tokens));
      }
    }

    function say(step) {
      const { done } = at(step);
      if (step === 0) return `Each rank holds ${Elements.grouped(tokens)} tokens and nothing else.`;
      if (way === "ring") {
        if (step === 1) return "Each rank attends to its own keys. The first has nothing else to read.";
        return `Exchange ${done} of ${
          P - 1
        }: keys and values go one rank on. Later ranks attend to them, earlier ones only pass them on.`;
      }
      if (step === 1) return "Each rank sums up its own part: one state, whatever its length.";
      if (step === length()) return "Each rank adds up the states before it and reads its tokens from there.";
      if (way === "gather") {
        return "One exchange: every state goes to every rank. Each needs those before it.";
      }
      return [
        "Exchange 1 of 3: each state goes one rank on.",
        "Exchange 2 of 3: each rank passes on the state it received. The next rank adds it.",
        "Exchange 3 of 3: sums go two ranks on. Each exchange doubles how far a rank sees.",
      ][done - 1];
    }

    const steps = Stage.stepper(stage, { length, render, say, milliseconds: 1200 });
    const choice = Stage.radios("What travels", WAYS, way, (chosen) => {
      way = chosen;
      steps.show(length());
    });
    const slider = Stage.slider("ranks-tokens", "Tokens a rank", LENGTHS, tokens, (chosen) => {
      tokens = chosen;
      steps.show(steps.step());
    });
    stage.append(
      choice,
      element("div", { class: "stage-row" }, slider, steps.bar),
      steps.line,
      picture,
      element("ul", { class: "lines-names" }, names),
      element("div", { class: "stage-counts" }, total.group, Object.values(ends).map(({ group }) => group)),
    );
    steps.show(2);
    return {
      way: [Stage.pick(choice), "gather"],
      tokens: [Stage.slide(slider, LENGTHS), 1024],
      step: [Stage.whole(steps.show, steps.step, 0, P + 1), 2],
    };
  });
}
