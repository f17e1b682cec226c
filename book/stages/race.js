"use strict";

/* The race: against updates the two models have the same line; against minutes one is done while
   the other is still running. The reader may first guess when it will be done. The losses are data
   from the page's figures module: element #race-data. */

{
  const { element, svg } = Stage;
  const { formatNumber, interpolate } = window.ExplorableModel, { axis } = window.Lines;
  const NAMES = { softmax: "Softmax", linear: "Linear" }, MODELS = Object.keys(NAMES);
  const VIEWS = { update: "Updates", guess: "Guess the time", minutes: "Time" };
  const FIRST = "update", OPENS_AT = 16384, LOSS = [1.4, 4.6], STEPS = 60;
  const DIAL = 20; // half of a clock
  const NARROW = 360; // px of a plot whose labels are at its right end

  const minutesText = (value) => `${formatNumber(value, value < 10 ? 2 : 3)} min`;
  const nats = (value, digits = 4) => formatNumber(value, digits);

  /* Data of one context: each model's minutes, losses and end. */
  function raceOf({ context, updates, seconds, loss }) {
    const ends = Object.fromEntries(MODELS.map((name) => [name, (updates.at(-1) * seconds[name]) / 60]));
    const [first, last] = ends.linear <= ends.softmax ? ["linear", "softmax"] : ["softmax", "linear"];
    const then = interpolate(updates, loss[last], (60 * ends[first]) / seconds[last]);
    return { context, updates, loss, ends, first, last, then };
  }

  /* A clock face of an hour, or of as many as the slowest model takes. */
  function clock(name) {
    const sector = svg("path", { class: "race-sector" }), value = element("b"), words = element("span");
    const node = element(
      "section",
      { class: `race-clock race-${name}`, "aria-label": NAMES[name] },
      svg(
        "svg",
        { viewBox: `0 0 ${2 * DIAL} ${2 * DIAL}`, "aria-hidden": "true" },
        svg("circle", { cx: DIAL, cy: DIAL, r: DIAL - 1 }),
        sector,
        svg("path", { class: "race-twelve", d: `M${DIAL} 1V6` }),
      ),
      element("p", {}, element("span", { class: "race-name" }, NAMES[name]), " ", value, " ", words),
    );
    function set(share) {
      const turn = Math.min(share, 0.9999) * 2 * Math.PI, r = DIAL - 2;
      const end = `${DIAL + r * Math.sin(turn)} ${DIAL - r * Math.cos(turn)}`;
      sector.setAttribute(
        "d",
        share > 0 ? `M${DIAL} ${DIAL}V${DIAL - r}A${r} ${r} 0 ${turn > Math.PI ? 1 : 0} 1 ${end}Z` : "",
      );
    }
    return { node, set, value, words, minutes: 0 };
  }

  Stage.mountStored("race", (stage, data) => {
    const races = data.map(raceOf), contexts = races.map(({ context }) => context);
    const opens = contexts.includes(OPENS_AT) ? OPENS_AT : contexts.at(-1);
    const hours = Math.ceil(Math.max(...races.flatMap(({ ends }) => Object.values(ends))) / 60);
    const clocks = Object.fromEntries(MODELS.map((name) => [name, clock(name)]));
    const plot = new window.Lines.Plot(), line = element("p", { class: "stage-line", role: "status" });
    const reveal = element("button", { type: "button", onclick: () => Stage.pick(by)("minutes") }, "Reveal");
    let view = FIRST, race = races[contexts.indexOf(opens)], guess = 1, guessed = false;

    /* The guess is a share of softmax's minutes, so that it keeps its place at every context. */
    const guessMinutes = () => guess * race.ends.softmax;
    function bet(share) {
      guess = Math.min(1, Math.max(1 / STEPS, share));
      guessed = true;
      render(false);
    }

    function linesNow() {
      const { updates, loss, ends } = race, last = updates.at(-1);
      const spread = (end) => updates.map((update) => (update / last) * end);
      const lines = MODELS.map((name) => ({
        id: name,
        name: NAMES[name],
        color: name,
        css: name === "softmax" ? "race-line-softmax" : "", // wide, to show below the other
        xs: view === "update"
          ? updates
          : spread(view === "guess" && name === "linear" ? guessMinutes() : ends[name]),
        ys: loss[name],
        ended: view === "minutes" ? `done at ${minutesText(ends[name])}` : "",
      }));
      if (view === "guess") lines[1].css += " lines-dashed";
      if (view === "minutes" && guessed) {
        lines.unshift({
          id: "guess",
          color: "none",
          css: "lines-dashed",
          xs: spread(guessMinutes()),
          ys: loss.linear,
        });
      }
      return lines;
    }

    const words = (x, y, css, text, anchor = "start") =>
      svg("text", { class: `lines-words ${css}`, x, y, "text-anchor": anchor }, text);

    /* A flag where the first is done, with the other's progress at that time. */
    function flag(at, { right, top, bottom }) {
      const { first, last, ends, then } = race;
      const [x] = at(ends[first], LOSS[0]), [, y] = at(0, then);
      const left = x > (right * 2) / 3, side = left ? -1 : 1, anchor = left ? "end" : "start";
      return [
        svg("path", { class: "race-pole", d: `M${x} ${bottom}V${top}` }),
        svg("path", {
          class: `race-flag race-${first}`,
          d: `M${x} ${top}h${side * 18}l${side * -5} 6l${side * 5} 6h${side * -18}z`,
        }),
        words(
          x + side * 24,
          top + 11,
          `race-${first}`,
          `${NAMES[first]} is done: ${minutesText(ends[first])}`,
          anchor,
        ),
        svg("circle", { class: `race-dot race-${last}`, cx: x, cy: y, r: 4.5 }),
        words(x + side * 12, y - 8, `race-${last}`, `${NAMES[last]} is still at ${nats(then, 3)}`, anchor),
      ];
    }

    function marks(at, box) {
      const { updates, loss, ends } = race, narrow = box.width < NARROW;
      const i = Math.floor(updates.length / (narrow ? 4 : 3));
      if (view === "minutes") return flag(at, box);
      const [x, y] = at(
        view === "update" ? updates[i] : (ends.softmax * updates[i]) / updates.at(-1),
        loss.softmax[i],
      );
      if (view === "guess") {
        return [words(x + 6, y - 12, "race-softmax", `Softmax: ${minutesText(ends.softmax)}`)];
      }
      return [
        words(narrow ? box.right : x + 6, y - 12, "", [
          svg("tspan", { class: "race-softmax" }, "Softmax"),
          " and ",
          svg("tspan", { class: "race-linear" }, "linear"),
          ": one line",
        ], narrow ? "end" : "start"),
      ];
    }

    function say() {
      const { updates, loss, ends, first, last, then } = race, many = Elements.grouped(updates.at(-1));
      if (view === "update") {
        const apart = Math.abs(loss.softmax.at(-1) - loss.linear.at(-1)).toFixed(3);
        const took = ends[last] < 1.2 * ends[first]
          ? "and took about the same time."
          : "but one took longer. Guess how much.";
        return `After ${many} updates their losses are ${apart} nats a byte apart, ${took}`;
      }
      if (view === "guess") {
        return guessed
          ? `You say that linear is done after ${minutesText(guessMinutes())}.`
          : "When will linear be done? Drag its end to the left.";
      }
      const factor = Math.max(guessMinutes() / ends.linear, ends.linear / guessMinutes());
      return [
        guessed ? `You said ${minutesText(guessMinutes())}, ${formatNumber(factor, 2)} times off.` : "",
        `${NAMES[first]} is done after ${minutesText(ends[first])}. ${NAMES[last]} is then at ${
          nats(then, 3)
        } nats a byte and takes ${minutesText(ends[last])}.`,
      ].join(" ").trim();
    }

    function setClocks() {
      const { updates, loss, ends } = race, many = Elements.grouped(updates.at(-1));
      for (const name of MODELS) {
        const { node, value, words } = clocks[name], hidden = view === "guess" && name === "linear";
        const took = hidden ? guessMinutes() : ends[name];
        value.textContent = view === "update"
          ? nats(loss[name].at(-1))
          : `${minutesText(took)}${hidden ? "?" : ""}`;
        node.classList.toggle("race-untimed", view === "update");
        words.textContent = view === "update" ? `nats a byte after ${many} updates` : `for ${many} updates`;
      }
    }

    function render(glide = true) {
      const from = MODELS.map((name) => clocks[name].minutes);
      const to = MODELS.map((name) =>
        view === "update" ? 0 : view === "guess" && name === "linear" ? guessMinutes() : race.ends[name]
      );
      const longest = view === "guess" ? race.ends.softmax : Math.max(...Object.values(race.ends));
      const along = view === "update"
        ? axis("updates", "", "Updates", 4, [0, race.updates.at(-1)])
        : axis("time", "min", "Time (minutes of training)", 3, [0, longest]);
      const knob = {
        x: guessMinutes(),
        y: race.loss.linear.at(-1),
        aria: {
          label: "When linear is done",
          valuetext: minutesText(guessMinutes()),
          valuenow: Math.round(guess * STEPS),
          valuemin: 1,
          valuemax: STEPS,
        },
        step: (n) => bet(guess + n / STEPS),
      };
      reveal.hidden = view !== "guess";
      setClocks();
      line.textContent = say();
      plot.show({
        x: along,
        y: axis("loss", "nats per byte", "Loss, nats per byte (lower is better)", 4, LOSS),
        lines: linesNow(),
        marks,
        said: `Loss against ${along.noun} at a context of ${Elements.grouped(race.context)} bytes. ${say()}`,
        handles: view === "guess" ? [knob] : [],
        drag: (x) => bet(x / race.ends.softmax),
      }, {
        glide,
        moving: (share) =>
          MODELS.forEach((name, i) => {
            clocks[name].minutes = from[i] + share * (to[i] - from[i]);
            clocks[name].set(clocks[name].minutes / 60 / hours);
          }),
      });
    }

    const by = Stage.radios("Against", VIEWS, FIRST, (chosen) => {
      view = chosen;
      render();
    });
    const context = Stage.slider("race-context", "Context, bytes", contexts, opens, (chosen) => {
      race = races[contexts.indexOf(chosen)];
      render();
    });
    stage.append(
      element("div", { class: "stage-row race-settings" }, by, context),
      plot.node,
      element("div", { class: "race-clocks" }, MODELS.map((name) => clocks[name].node), reveal),
      line,
    );
    render(false);
    return { by: [Stage.pick(by), FIRST], context: [Stage.slide(context, contexts), opens] };
  });
}
