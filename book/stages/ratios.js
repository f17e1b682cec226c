"use strict";

/* Speedup against the context. The reader draws the line of the layer alone, then sees the measured
   ones, of the layer and of larger parts of a model. The ratios are data from the page's figures
   module: element #ratios-data. Until then the table of the ratios below the stage is hidden. */

{
  const { element, svg } = Stage;
  const { formatNumber } = window.ExplorableModel, { axis } = window.Lines;
  const RANGE = [0.3, 1000], STEP = 10 ** 0.05;
  const COLORS = ["linear", "other-1", "other-2", "other-3", "none"];
  const times = (value) => `${formatNumber(value, value < 100 ? 2 : 3)}×`;
  const steps = (value) => Math.round(Math.log(value) / Math.log(STEP));
  const off = (a, b) => Math.max(a / b, b / a);

  Stage.mountStored("ratios", (stage, series) => {
    const lengths = series[0].lengths, stored = series[0].ratios;
    const table = stage.closest("section")?.querySelector(".cell:has(table)");
    const told = table ? [table, table.nextElementSibling] : []; // and the note on its columns
    const names = element("ul", { class: "lines-names" });
    const plot = new window.Lines.Plot(), line = element("p", { class: "stage-line", role: "status" });
    let drawn = lengths.map(() => 1), shown = false, last = null;
    const touched = () => drawn.some((value) => value !== 1);

    /* Places skipped in a quick drag get values on the line between its two ends. */
    function draw(x, y) {
      const near = (i) => Math.abs(Math.log(lengths[i] / x));
      const here = lengths.reduce((best, _, i) => (near(i) < near(best) ? i : best), 0);
      const from = last !== null && Math.abs(here - last) > 1 ? last : here, before = drawn[from];
      for (let i = from; i !== here; i += Math.sign(here - from)) {
        drawn[i] = before * (y / before) ** ((i - from) / (here - from));
      }
      drawn[here] = y;
      last = here;
      render(false);
    }

    function lines() {
      const you = { id: "drawn", name: "You", color: "none", css: "lines-dashed", xs: lengths, ys: drawn };
      if (!shown) return [{ ...you, id: "stored" }];
      const measured = series.map(({ name, lengths, ratios }, i) => ({
        id: i ? name : "stored",
        name,
        color: COLORS[i],
        css: i ? "lines-thin" : "",
        xs: lengths,
        ys: ratios,
      }));
      return [...(touched() ? [you] : []), ...measured.reverse()];
    }

    /* Names of the lines; the plot itself has only that of the layer alone. */
    function legend() {
      const parts = lines().filter(({ id }) => shown && id !== "stored");
      names.replaceChildren(
        ...parts.map(({ name, color, css }) => Stage.lined(name, `var(--${color})`, css)),
      );
    }

    function marks(at, box) {
      const [, one] = at(lengths[0], 1);
      const even = svg(
        "text",
        { class: "lines-tick", x: box.right, y: one + 24, "text-anchor": "end" },
        "1: equally fast",
      );
      const [x, y] = shown ? at(lengths.at(-1), stored.at(-1)) : at(lengths[0], drawn[0]);
      const name = shown
        ? svg(
          "text",
          { class: "lines-words race-linear", x, y: y - 10, "text-anchor": "end" },
          "The layer alone",
        )
        : svg("text", { class: "lines-words", x: x - 10, y: y - 18 }, "Your guess");
      return [even, name];
    }

    function say() {
      const end = Elements.grouped(lengths.at(-1));
      if (!shown) return `You say ${times(drawn.at(-1))} at ${end} tokens.`;
      const found = `At ${end} tokens the layer alone is ${times(stored.at(-1))} as fast.`;
      if (!touched()) return found;
      const mean = Math.exp(
        drawn.reduce((sum, value, i) => sum + Math.log(off(value, stored[i])), 0) / drawn.length,
      );
      return `${found} You said ${times(drawn.at(-1))}. Over all contexts you were ${
        formatNumber(mean, 2)
      } times off.`;
    }

    function render(glide = true) {
      line.textContent = say();
      legend();
      names.hidden = !shown;
      reveal.hidden = shown;
      again.hidden = !shown;
      for (const node of told) node.hidden = !shown;
      const clamp = (value) => Math.min(RANGE[1], Math.max(RANGE[0], value));
      plot.show({
        x: axis("context", "tokens", "Context (tokens, log scale)", 6, [200, 170000], {
          log: 2,
          at: lengths,
        }),
        y: axis("ratio", "times", "Softmax’s time over linear’s (log scale)", 3, RANGE, { log: 10 }),
        mark: "line+dot",
        lines: lines(),
        dots: shown ? lines().filter(({ id }) => id !== "drawn") : [],
        marks,
        said: `Ratio of times against the context. ${say()}`,
        drag: draw,
        handles: shown ? [] : lengths.map((x, i) => ({
          x,
          y: drawn[i],
          aria: {
            label: `How many times faster at ${Elements.grouped(x)} tokens`,
            valuetext: times(drawn[i]),
            valuenow: steps(drawn[i]),
            valuemin: steps(RANGE[0]),
            valuemax: steps(RANGE[1]),
          },
          step: (n) => {
            drawn[i] = clamp(drawn[i] * STEP ** n);
            render(false);
          },
        })),
      }, { glide });
    }

    const show = (value) => {
      if (!["draw", "measured"].includes(value)) return false;
      shown = value === "measured";
      last = null;
      render();
      return true;
    };
    const reveal = Stage.swap("Reveal", () => show("measured"), () => again),
      again = Stage.swap("Draw again", () => show("draw"), () => reveal);
    plot.pad.addEventListener("pointerup", () => (last = null));
    stage.append(plot.node, names, Stage.buttons("Steps", reveal, again), line);
    render(false);
    return { show: [Stage.setter(show, () => (shown ? "measured" : "draw")), "draw"] };
  });
}
