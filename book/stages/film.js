"use strict";

/* Two models of the race at stops of their training: what each writes after one sentence, and what
   a head of each looks at in it. Data from the page's figures module: element #film-data. */

{
  const { element, svg } = Stage;
  const NAMES = { softmax: "Softmax", linear: "Linear" };
  const KINDS = { greedy: "The most likely letter each time", sampled: "Letters drawn by their probability" };
  const CELL = 10, SQUARE = "h9.2v9.2h-9.2z", DIGITS = 36;

  const minutes = (model, i) => (model.updates[i] * model.seconds) / 60;
  const round = (value) => Number(value.toFixed(value < 1 ? 2 : 1));
  const quiet = (text = "") => element("p", { class: "film-quiet" }, text);

  /* Stops by updates or minutes: [value, index of each model's last stop up to it]. */
  function stopsBy(models, at) {
    const values = new Set(models.flatMap((model) => model.updates.map((_, i) => at(model, i))));
    const last = (value) => models.map((one) => one.updates.findLastIndex((_, i) => at(one, i) <= value));
    return [...values].sort((a, b) => a - b).map((value) => [value, last(value)]);
  }
  function countsOf(models) {
    const counts = { update: stopsBy(models, (model, i) => model.updates[i]) };
    if (models.every(({ seconds }) => seconds)) counts.minute = stopsBy(models, minutes);
    return counts;
  }

  const clean = (text) =>
    (text.trim() ? text : "(spaces only)").replace(/\n/g, " ↵ ").replace(
      /[\u0000-\u001f\u007f-\u009f]/g,
      "\ufffd",
    );
  /* The loss measured nearest to a stop; held-out text is read at other updates than stops. */
  const lossNear = ({ loss }, update) =>
    loss.reduce((a, b) => (Math.abs(b[0] - update) < Math.abs(a[0] - update) ? b : a));
  function lossOf(model, i) {
    const update = model.updates[i],
      [at, loss] = lossNear(model, update),
      time = model.seconds ? `, ${round(minutes(model, i))} min` : "";
    return `${Elements.grouped(update)} updates${time}: ${loss.toFixed(2)} nats a byte${
      at === update ? "" : `, measured at ${Elements.grouped(at)}`
    }`;
  }
  const headName = ([layer, place, fades]) =>
    `Layer ${layer + 1}, head ${place + 1}, ${fades ? "fades" : "sees far"}`;

  /* A model's side: what it writes, and its map, with a row for each letter and a square for each
     earlier one. A path holds all squares of one shade. */
  function sideOf(model, looked) {
    const squares = [...looked].flatMap((_, row) =>
      Array.from({ length: row + 1 }, (_, column) => `M${column * CELL} ${row * CELL}${SQUARE}`)
    );
    const state = element("p"), peak = quiet();
    const texts = Stage.mapped(KINDS, () => element("p", { class: "film-text", dir: "ltr" }));
    const shades = Array.from(
      { length: DIGITS },
      (_, digit) => svg("path", { "fill-opacity": (0.03 + (0.97 * digit) / (DIGITS - 1)).toFixed(3) }),
    );
    const size = (looked.length + 1.5) * CELL;
    const picture = svg(
      "svg",
      { viewBox: `0 0 ${size} ${size - CELL}`, role: "img" },
      shades,
      [...looked].map((letter, i) =>
        svg("text", { x: (i + 1) * CELL + 2, y: (i + 1) * CELL - 2 }, letter === " " ? "·" : letter)
      ),
    );
    const name = NAMES[model.name], css = model.name === "softmax" ? "film-softmax" : "film-linear";
    const writing = element(
      "section",
      { class: `film-writing ${css}`, "aria-label": `${name} writes` },
      element("p", { class: "film-name" }, name),
      state,
      Object.entries(KINDS).flatMap(([kind, label]) => [quiet(label), texts[kind]]),
    );
    const look = element(
      "section",
      { class: `film-look ${css}`, "aria-label": `${name} looks at` },
      element("p", { class: "film-name" }, name),
      picture,
      peak,
    );
    return { model, looked, state, peak, texts, squares, shades, picture, writing, look };
  }

  /* Shows a side at stop i, with the map of a head of this name. */
  function show({ model, looked, state, peak, texts, squares, shades, picture }, i, head, name) {
    const map = model.maps[head][i];
    state.textContent = lossOf(model, i);
    for (const [kind, node] of Object.entries(texts)) node.textContent = clean(model.samples[kind][i]);
    const drawn = shades.map(() => "");
    squares.forEach((square, j) => (drawn[parseInt(map[j], DIGITS)] += square));
    shades.forEach((shade, digit) => shade.setAttribute("d", drawn[digit]));
    peak.textContent = `Largest weight of a row, on average: ${model.peaks[head][i]}%`;
    picture.setAttribute(
      "aria-label",
      `${NAMES[model.name]}, ${name}, after ${
        model.updates[i]
      } updates: the weights of ${looked.length} letters`,
    );
  }

  Stage.mountStored("film", (stage, { prompt, looked, heads, shown, models, sources }) => {
    const counts = countsOf(models), sides = models.map((model) => sideOf(model, looked));
    const lists = Stage.mapped(counts, (stops) => stops.map(([value]) => round(value)));
    let by = counts.minute ? "minute" : "update", head = shown;
    const first = by;

    const stops = () => counts[by];
    function render(n) {
      sides.forEach((side, which) => show(side, stops()[n][1][which], head, headName(heads[head])));
      sliders[by].put(n);
    }
    const say = (n) =>
      models.map((model, which) => `${NAMES[model.name]} after ${lossOf(model, stops()[n][1][which])}.`)
        .join(" ");

    const length = () => stops().length - 1;
    const steps = Stage.stepper(stage, { length, render, say, milliseconds: 1400 });
    const titles = { update: "Updates", minute: "Minutes of training" };
    const sliders = Stage.mapped(lists, (list, count) => {
      const show = (value) => steps.show(list.indexOf(value));
      return Stage.slider(`film-${count}`, titles[count], list, list.at(-1), show);
    });
    const only = () =>
      Object.entries(sliders).forEach(([count, control]) => {
        control.hidden = count !== by;
      });
    /* Changes between updates and minutes, at the nearest stop of the second model. */
    const count = Stage.radios("Same", { update: "updates", minute: "minutes" }, by, (chosen) => {
      const [, places] = stops()[steps.step()];
      by = chosen;
      only();
      steps.show(stops().findIndex(([, other]) => other.at(-1) >= places.at(-1)));
    });
    const chooser = Stage.select(
      "film-head",
      "What a head looks at",
      { ...heads.map(headName) },
      shown,
      (i) => {
        head = i;
        steps.show(steps.step());
      },
    );

    only();
    steps.line.classList.add("figure-hidden");
    stage.append(
      element(
        "div",
        { class: "stage-row film-settings" },
        counts.minute ? count : "",
        Object.values(sliders),
      ),
      steps.bar,
      steps.line,
      element("p", { class: "film-prompt" }, "Both continue from: ", element("q", {}, prompt.trim())),
      element("div", { class: "film" }, sides.map(({ writing }) => writing)),
      chooser,
      element("div", { class: "film" }, sides.map(({ look }) => look)),
      Stage.provenance(sources),
    );
    /* The first stop at which one model has ended. By minutes, the other is still training. */
    const done = () =>
      stops().findIndex(([, places]) =>
        places.some((place, which) => place === models[which].updates.length - 1)
      );
    steps.show(done());
    /* The last stop up to a number of updates or minutes. */
    const stop = (text) => {
      const named = { last: length, done }[text];
      const n = named ? named() : lists[by].findLastIndex((value) => value <= Number(text));
      return n >= 0 ? steps.show(n) : false;
    };
    const stopped = () => {
      const n = steps.step();
      return n === done() ? "done" : n === length() ? "last" : String(lists[by][n]);
    };
    return {
      by: [Stage.pick(count), first],
      head: [Stage.entry(chooser), shown],
      stop: [Stage.setter(stop, stopped), "done"],
    };
  });
}
