"use strict";

/* One output for each input: what each output of a layer reads. */

{
  const { svg } = Stage;
  const TEXT = [..."penguin"],
    T = TEXT.length,
    WIDTH = 351,
    GAP = WIDTH / T,
    R = 13,
    BOTTOM = 134,
    MIDDLE = 78,
    TOP = 22;
  const from = (first, last) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
  const said = (list) => (list.length === 1 ? `input ${list[0]}` : `inputs ${list[0]} to ${list.at(-1)}`);

  /* reads(i): the inputs that output i depends on, counted from 1. */
  const kinds = {
    each: { name: "Elementwise", reads: (i) => [i], how: "the same function for each element" },
    gram: {
      name: "3-gram",
      reads: (i) => from(Math.max(1, i - 2), i),
      how: "the last three inputs, laid end to end",
    },
    rnn: {
      name: "Recurrent",
      reads: (i) => from(1, i),
      how: "all inputs so far, but only through the state",
      state: true,
    },
    causal: {
      name: "Causal attention",
      reads: (i) => from(1, i),
      how: "a weighted mean over the past, each input seen directly",
    },
    both: {
      name: "Attention",
      reads: () => from(1, T),
      how: "a weighted mean over all inputs, the later ones included",
    },
  };

  const x = (i) => GAP * (i - 0.5);

  Stage.mount("signature", (stage) => {
    const picture = svg("svg", {
      viewBox: `0 0 ${WIDTH} 158`,
      role: "img",
      "aria-label": "Seven inputs below, seven outputs above, and lines from the inputs that an output reads",
    });
    const lines = svg("g");
    const node = (y, i, text) => {
      const group = svg(
        "g",
        { class: "signature-node" },
        svg("circle", { cx: x(i), cy: y, r: R }),
        svg("text", { x: x(i), y: y + 4, "text-anchor": "middle", "font-size": 11 }, text),
      );
      return group;
    };
    const inputs = TEXT.map((letter, i) => node(BOTTOM, i + 1, letter));
    const states = TEXT.map((_, i) => node(MIDDLE, i + 1, `s${i + 1}`));
    const outputs = TEXT.map((_, i) => node(TOP, i + 1, `y${i + 1}`));
    picture.append(lines, ...inputs, ...states, ...outputs);

    let kind = "rnn";
    /* A line with an arrowhead, drawn along the x axis and turned. */
    const path = (x1, y1, x2, y2, on) =>
      svg("path", {
        class: `signature-line${on ? " signature-on" : ""}`,
        d: `M0 0H${Math.hypot(x2 - x1, y2 - y1)}m-5 -3l5 3l-5 3`,
        transform: `translate(${x1} ${y1}) rotate(${Math.atan2(y2 - y1, x2 - x1) * 180 / Math.PI})`,
      });

    function render(n) {
      const { reads, state } = kinds[kind], read = n ? reads(n) : [];
      const drawn = [];
      for (const i of from(1, T)) {
        if (state) {
          const on = i <= n;
          drawn.push(
            path(x(i), BOTTOM - R, x(i), MIDDLE + R, on),
            path(x(i), MIDDLE - R, x(i), TOP + R, i === n),
          );
          if (i > 1) drawn.push(path(x(i - 1) + R, MIDDLE, x(i) - R, MIDDLE, on));
        } else if (i === n) {
          for (const j of read) drawn.push(path(x(j), BOTTOM - R, x(i), TOP + R, true));
        }
      }
      lines.replaceChildren(...drawn);
      const mark = (nodes, on) =>
        nodes.forEach((one, i) => one.classList.toggle("signature-here", on(i + 1)));
      states.forEach((one) => one.setAttribute("visibility", state ? "visible" : "hidden"));
      mark(inputs, (i) => read.includes(i));
      mark(states, (i) => i <= n);
      mark(outputs, (i) => i === n);
    }

    function say(n) {
      const { name, reads, how } = kinds[kind];
      if (!n) return `${name}: seven inputs, so there will be seven outputs.`;
      return `${name}. Output ${n} depends on ${said(reads(n))}: ${how}.`;
    }

    const steps = Stage.stepper(stage, { length: () => T, render, say });
    const choice = Stage.radios("Layer", kinds, kind, (chosen) => {
      kind = chosen;
      steps.show(steps.step());
    });
    stage.append(choice, picture, steps.line, steps.bar);
    steps.show(4);
    return { layer: [Stage.pick(choice), "rnn"], step: [Stage.whole(steps.show, steps.step, 0, T), 4] };
  });
}
