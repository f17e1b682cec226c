"use strict";

/* The least time of each mode on a device of the reader's choice, against the length, with stored
   measurements of the same shape. The devices are data from the page's figures module: element
   #devices-data. */

{
  const { element, svg } = Stage;
  const { axis, decades } = window.Lines;
  const LENGTHS = Array.from({ length: 12 }, (_, i) => 64 * 2 ** i);
  const WAITS = [
    { name: "as one multiply-add", seconds: null },
    { name: "0.1 µs", seconds: 1e-7 },
    { name: "1 µs", seconds: 1e-6 },
    { name: "5 µs, a kernel launch", seconds: 5e-6 },
  ];
  const MODES = {
    attention: { name: "Attention mode, softmax", measured: ["attention", "softmax"] },
    recurrent: { name: "Recurrent mode", measured: ["recurrent"] },
    chunked: { name: "Chunked mode", measured: ["chunked"] },
  };
  const NAMES = { softmax: "softmax", attention: "attention mode" };
  const FIRST = { t: 16384, d: 64, c: 32, heads: 1 }, HEADS = [1, 12, 25];
  const powers = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => 2 ** (from + i));
  const LISTS = { t: LENGTHS, d: powers(4, 8), c: powers(4, 10) };

  const { digits, seconds: duration, flops: flopText, bytes: byteText } = Costs.text;

  /* The reader's choices, and the limits for them. */
  class Limits {
    constructor(devices) {
      this.devices = devices;
      this.chosen = {
        ...FIRST,
        device: Math.max(0, devices.findIndex(({ points }) => points.length)),
        step: null,
      };
    }

    get device() {
      return this.devices[this.chosen.device];
    }

    bound(mode, t) {
      const { chosen } = this, { flops, bytes, step, item, waits, vendor } = this.device;
      const cost = Costs.mode(mode, { ...chosen, t, item });
      if (!flops) return { ...cost, seconds: null };
      const wait = waits.includes(mode) ? (vendor && chosen.step) || step : 0;
      return { ...cost, ...Costs.least(cost, { flops, bytes, step: wait }) };
    }

    /* Stored points of this shape: [mode, length, seconds]. */
    measured() {
      const { d, heads } = this.chosen, { width, points } = this.device;
      return width === d ? points.filter((point) => point[3] === heads) : [];
    }

    /* The same from the reader's own browser, which measured one head of 64. */
    here() {
      const { d, heads } = this.chosen;
      const times = (mode) => Object.entries(BrowserTimes.times("forward", mode));
      const rows = (mode) => times(mode).map(([t, seconds]) => [mode, Number(t), seconds]);
      return d !== 64 || heads !== 1
        ? []
        : Object.values(MODES).flatMap((each) => each.measured.flatMap(rows));
    }

    sentence() {
      const { t } = this.chosen, at = Object.keys(MODES).map((mode) => [mode, this.bound(mode, t).seconds]);
      const where = `At ${Elements.grouped(t)} tokens on ${this.device.name}`;
      if (at[0][1] === null) {
        return `${where}: this device's own speeds have not been measured yet, so there is no bound to draw. `
          + "The points are measured.";
      }
      const least = Math.min(...at.map(([, seconds]) => seconds));
      const best = at.filter(([, seconds]) => seconds < 1.005 * least).map(([mode]) => mode);
      const found = this.measured();
      const behind = at.flatMap(([mode, seconds]) => {
        const point = found.find((one) => one[0] === mode && one[1] === t);
        return point ? [`${mode} ${digits(point[2] / seconds)}×`] : [];
      });
      const others = at.filter(([mode]) => !best.includes(mode)).map(([mode, seconds]) =>
        `${mode} ${digits(seconds / least)} times`
      );
      const first = best.length > 1
        ? `${best.join(" and ")} mode share the lowest bound`
        : `${best[0]} mode has the lowest bound`;
      return [
        `${where}, ${first}.`,
        others.length ? `Higher: ${others.join(", ")}.` : "",
        behind.length ? `Measured times over their bounds: ${behind.join(", ")}.` : "",
      ].join(" ");
    }
  }

  /* Shows the bounds as dashed lines, measured times as dots, and the chosen length. */
  function draw(plot, limits) {
    const { t: chosen } = limits.chosen, points = limits.measured(), here = limits.here();
    const lines = Object.entries(MODES).map(([mode, { name }]) => ({
      id: mode,
      name: `${name}, bound`,
      css: "lines-dashed lines-thin",
      color: mode,
      xs: LENGTHS,
      ys: LENGTHS.map((t) => 1e3 * limits.bound(mode, t).seconds),
    })).filter(({ ys }) => ys[0] > 0);
    const dots = [...points.map((one) => [one, ""]), ...here.map((one) => [one, "lines-hollow"])]
      .map(([[mode, t, seconds], dot]) => ({ dot, color: mode, xs: [t], ys: [1e3 * seconds] }));
    const values = [0.1, 1, ...[...lines, ...dots].flatMap(({ ys }) => ys)];
    const given = `${points.length} measured points${here.length ? `, ${here.length} of this browser` : ""}`;
    plot.show({
      x: axis("length", "tokens", "Sequence length (tokens, log scale)", 6, [58, 145000], { log: 2 }),
      y: axis("time", "ms", "Time (log scale)", 3, decades(values), {
        log: 10,
        text: (ms) => duration(ms / 1e3),
      }),
      lines,
      dots,
      marks: (at, { top, bottom }) => [
        svg("path", { class: "roofline-now", d: `M${at(chosen, 1)[0]} ${top - 6}V${bottom}` }),
      ],
      said: `Least time against sequence length on ${limits.device.name}, with ${given}; the numbers at `
        + `${chosen} tokens are below.`,
    }, { glide: false });
  }

  /* Names of the colours, and meaning of dots and dashes. */
  function legend() {
    const dot = () => svg("circle", { style: "fill: var(--line)", cx: 11, cy: 5, r: 4.5 });
    const colours = Object.entries({
      attention: "Attention mode",
      softmax: "Softmax",
      recurrent: "Recurrent mode",
      chunked: "Chunked mode",
    });
    return element("ul", { class: "lines-names" }, [
      ...colours.map(([mode, name]) => Stage.named(name, [dot()], `var(--${mode})`)),
      Stage.named("dot: measured", [dot()]),
      Stage.lined("dashes: bound", "currentColor", "lines-dashed"),
    ]);
  }

  function card(limits, mode) {
    const { name, measured } = MODES[mode], { t: chosen } = limits.chosen;
    const { flops, bytes, ends, steps, seconds, by } = limits.bound(mode, chosen);
    const at = (points) =>
      points.filter(([one, t]) => measured.includes(one) && t === chosen)
        .map(([one, , took]) => `${duration(took)}${NAMES[one] ? ` (${NAMES[one]})` : ""}`);
    const found = at(limits.measured()), here = at(limits.here());
    const quiet = (text) => element("p", { class: "roofline-quiet" }, text);
    return element(
      "section",
      {
        "aria-label": name,
        style: `--mode: var(--${mode}); --mode-text: var(--${mode}-text)`,
        "data-mode": mode,
        "data-flops": flops,
        "data-bytes": bytes,
        "data-steps": steps,
        "data-seconds": seconds,
      },
      element("p", { class: "roofline-name" }, name),
      element(
        "p",
        {},
        element("b", {}, seconds === null ? "no bound measured yet" : `at least ${duration(seconds)}`),
      ),
      seconds === null ? null : quiet(`set by ${by}`),
      quiet(
        `${flopText(flops)}, ${byteText(ends)} in and out, ${
          steps === 1 ? "1 step" : `${Elements.grouped(steps)} steps`
        }`,
      ),
      found.length
        ? element("p", {}, `measured: ${found.join(", ")}`)
        : quiet("measured: no stored run of this shape"),
      here.length ? element("p", {}, `this browser: ${here.join(", ")}`) : null,
    );
  }

  Stage.mount("roofline", (stage) => {
    const devices = Costs.devices();
    if (!devices.length) return;
    const limits = new Limits(devices), { chosen } = limits;
    const names = devices.map(({ name }) => name), first = names[chosen.device];
    const plot = new window.Lines.Plot();
    const cards = element("div", { class: "roofline-cards" });
    const line = element("p", { class: "stage-line", role: "status" });

    function update() {
      draw(plot, limits);
      cards.replaceChildren(...Object.keys(MODES).map((mode) => card(limits, mode)));
      line.textContent = limits.sentence();
      waits.hidden = !limits.device.vendor;
      // Settings from a link are unfolded.
      more.open ||= chosen.step !== null || ["d", "c", "heads"].some((key) => chosen[key] !== FIRST[key]);
    }

    const set = (key) => (value) => {
      chosen[key] = value;
      update();
    };
    const heads = Stage.radios("Heads", HEADS, chosen.heads, (value) => set("heads")(Number(value)));
    /* A measured device is shown with the number of heads that was measured. */
    function setDevice(name) {
      chosen.device = names.indexOf(name);
      const [point] = limits.device.points;
      if (point && !limits.measured().length && HEADS.includes(point[3])) {
        chosen.heads = point[3];
        heads.querySelector(`[value="${point[3]}"]`).checked = true;
      }
      update();
    }
    const slider = (key, label) => Stage.slider(`roofline-${key}`, label, LISTS[key], chosen[key], set(key));
    const setLength = (t) => {
      set("t")(t);
      Costs.length.tell(t, follow);
    };
    function follow(t) {
      sliders.t.put(LENGTHS.indexOf(t));
      set("t")(t);
    }
    const sliders = {
      t: Stage.slider("roofline-t", "Tokens t", LENGTHS, chosen.t, setLength),
      d: slider("d", "Head width d"),
      c: slider("c", "Chunk c"),
    };
    const waits = Stage.select("roofline-step", "A step waits, on a GPU", { ...WAITS }, 0, (i) => {
      set("step")(WAITS[i].seconds);
    });
    const device = Stage.select("roofline-device", "Device", names, first, setDevice);
    const more = Stage.more("heads, width, chunk, waiting", heads, sliders.d, sliders.c, waits);
    stage.append(
      element("div", { class: "stage-row" }, device, sliders.t),
      legend(),
      plot.node,
      line,
      cards,
      more,
    );
    update();
    BrowserTimes.listen(update);
    Costs.length.listen(follow);
    return {
      device: [Stage.entry(device), first],
      heads: [Stage.pick(heads), String(FIRST.heads)],
      ...Stage.mapped(LISTS, (list, key) => [Stage.slide(sliders[key], list), FIRST[key]]),
      wait: [Stage.entry(waits), 0],
    };
  });
}
