"use strict";

/* Speedup of linear attention over softmax: stored, and measured in the reader's own browser when
   its button is pressed. Stored times and the reference for the kernels are data from the page's
   figures module: element #browser-speed-data. */

{
  const { element, svg } = Stage;
  const { formatNumber } = window.ExplorableModel, { axis, decades } = window.Lines;
  const HERE = document.currentScript.src;
  const LENGTHS = Array.from({ length: 7 }, (_, i) => 256 * 2 ** i);
  const LIMIT = 5; // seconds of one measurement
  const CLOSE = 1e-4; // sums of 64 features in float32 may differ so much from lsa's in float64
  const MODES = { chunked: "Chunked mode", recurrent: "Recurrent mode", attention: "Attention mode" };
  const LINES = { ...MODES, linear: "One token after so many" };
  const times = (value) => `${formatNumber(Number(value.toPrecision(2)), 2)} times`;
  const { grouped: text } = Elements;

  /* Softmax's seconds over another mode's, at the lengths that have both: {length: ratio}. */
  const over = (softmax, other) =>
    Object.fromEntries(
      LENGTHS.filter((n) => softmax[n] && other[n]).map((n) => [n, softmax[n] / other[n]]),
    );

  function storedTimes(rows, mode) {
    return Object.fromEntries(rows.filter(([one]) => one === mode).map(([, n, seconds]) => [n, seconds]));
  }

  /* The result on this computer, in words that fit the times. */
  function verdict() {
    const found = (mode) => BrowserTimes.times("forward", mode), softmax = found("softmax");
    const longest = Math.max(...Object.keys(softmax).map(Number));
    const at = Object.keys(MODES).filter((mode) => found(mode)[longest])
      .map((mode) => [mode, softmax[longest] / found(mode)[longest]]).sort((a, b) => b[1] - a[1]);
    if (!at.length) return "Softmax was stopped at every length.";
    const [[best, ratio]] = at;
    const behind = LENGTHS.filter((n) => over(softmax, found("chunked"))[n] < 1);
    const stopped = ["softmax", ...Object.keys(MODES)].flatMap((mode) => {
      const row = BrowserTimes.rows().find((one) => one.mode === mode && one.seconds === null);
      return row ? [`${(MODES[mode] ?? "softmax").toLowerCase()} from ${text(row.length)}`] : [];
    });
    const [token, state] = ["softmax", "linear"].map((mode) => BrowserTimes.times("token", mode));
    const last = LENGTHS.filter((n) => token[n] && state[n]).at(-1);
    return [
      ratio > 1
        ? `At ${text(longest)} tokens this browser is fastest in ${best} mode: ${
          times(ratio)
        } softmax’s speed.`
        : `Linear attention is no faster than softmax in this browser, up to ${text(longest)} tokens.`,
      best === "recurrent" ? "In plain JavaScript the mode with the least arithmetic wins." : "",
      behind.length ? `Chunked mode is slower than softmax at ${behind.map(text).join(", ")} tokens.` : "",
      last
        ? `One token after ${text(last)} others: softmax takes ${times(token[last] / state[last])} as long.`
        : "",
      stopped.length ? `Stopped after ${LIMIT} s: ${stopped.join(", ")} tokens on.` : "",
    ].filter(Boolean).join(" ");
  }

  /* Adds hollow marks to the chart of stored times, which is of one head too. */
  function join() {
    const curves = ["softmax", ...Object.keys(MODES)].flatMap((mode) => {
      const rows = BrowserTimes.rows().filter((row) =>
        row.mode === mode && row.pass === "forward" && row.seconds !== null
      );
      if (!rows.length) return [];
      const column = (of) => rows.map(of);
      return [{
        name: `${MODES[mode] ?? "Softmax"}, this browser`,
        color: mode,
        dash: [],
        role: "browser",
        keys: { mode, pass: "forward" },
        columns: {
          length: column(({ length }) => length),
          ms: column(({ seconds }) => seconds * 1e3),
          ms_low: column(({ low }) => low * 1e3),
          ms_high: column(({ high }) => high * 1e3),
          us_token: column(({ seconds, length }) => (seconds / length) * 1e6),
        },
        source: "this browser",
      }];
    });
    window.Explorables?.join("mode-speed", curves);
  }

  const kernels = async () =>
    window.BrowserKernels ?? Elements.load(new URL("browser-kernels.js", HERE).href);

  /* Measures in a worker. Calls `tell` at each length and at the end. Returns a function that
     stops. */
  function measure(reference, tell) {
    let worker = null, address = null, over = false;
    const end = (words) => {
      worker?.terminate();
      URL.revokeObjectURL(address);
      if (!over) tell(words, true);
      over = true;
    };
    const fail = (error) =>
      end(`This browser could not be measured: ${error.message || "no worker starts"}.`);
    kernels().then(() => {
      if (over) return;
      const source = BrowserKernels.source({ lengths: LENGTHS, width: 64, limit: LIMIT }, reference);
      address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
      worker = new Worker(address);
      worker.onerror = fail;
      worker.onmessage = ({ data: { difference, length, rows, done } }) => {
        if (!(difference === undefined || difference < CLOSE)) {
          end(
            `The kernels differ from the book’s by ${
              formatNumber(difference, 2)
            } in this browser: not measured.`,
          );
        }
        if (length) tell(`Measuring ${text(length)} tokens …`);
        if (rows) BrowserTimes.put([...BrowserTimes.rows(), ...rows]);
        if (done) end("");
      };
    }).catch(fail);
    return () => end("");
  }

  Stage.mountStored("browser-speed", (stage, { reference, stored: { device, rows: stored } }) => {
    const plot = new window.Lines.Plot();
    const line = element("p", { class: "stage-line", role: "status" });
    // One button for start and stop, so that it keeps the focus.
    const start = Stage.button("", () => {
      if (stop) return stop();
      BrowserTimes.put([]);
      stop = measure(reference, (words, ended) => {
        if (ended) stop = null;
        render(words);
      });
      render("Checking the kernels …");
    });
    const save = Stage.button("Download CSV", () => Elements.save(BrowserTimes.csv(), "browser-times.csv"));
    const forget = Stage.button("Forget", () => BrowserTimes.put([]));
    const names = element("ul", { class: "lines-names" });
    let stop = null;

    function lines() {
      const drawn = (ratios, mode, here) => ({
        id: `${mode}${here ? " here" : ""}`,
        name: `${LINES[mode]}${here ? ", this browser" : ""}`,
        css: here ? "lines-dashed lines-thin" : "",
        dot: here ? "lines-hollow" : "",
        color: mode,
        xs: Object.keys(ratios).map(Number),
        ys: Object.values(ratios),
      });
      const softmax = storedTimes(stored, "softmax");
      return [
        ...Object.keys(MODES).map((mode) => drawn(over(softmax, storedTimes(stored, mode)), mode, false)),
        ...Object.keys(LINES).map((mode) => {
          const pass = mode === "linear" ? "token" : "forward";
          return drawn(over(BrowserTimes.times(pass, "softmax"), BrowserTimes.times(pass, mode)), mode, true);
        }),
      ].filter(({ xs }) => xs.length);
    }

    function marks(at, box) {
      const [left, even] = at(LENGTHS[0], 1);
      const name = svg(
        "text",
        { class: "lines-words", x: box.right, y: even + 24, "text-anchor": "end" },
        "softmax = 1×; above it is faster",
      );
      return [svg("path", { class: "race-pole", d: `M${left} ${even}H${box.right}` }), name];
    }

    /* Names of the lines, and marks for stored values and the reader's own. */
    function legend() {
      const dot = (css) => [svg("circle", { class: `lines-dot ${css}`, cx: 11, cy: 5, r: 3.5 })];
      const all = lines(), two = all.some(({ dot }) => dot);
      names.replaceChildren(
        ...Object.keys(LINES).filter((mode) => all.some(({ color }) => color === mode))
          .map((mode) => Stage.lined(LINES[mode], `var(--${mode})`)),
        Stage.named(
          `${two ? "filled: " : ""}this book’s code against PyTorch’s softmax, on ${device}`,
          dot(""),
        ),
        ...(two ? [Stage.named("hollow: this browser", dot("lines-hollow"))] : []),
      );
    }

    /* The length from which a mode of lsa stays faster than softmax, and its speedup at the end. */
    function ahead(mode) {
      const ratio = over(storedTimes(stored, "softmax"), storedTimes(stored, mode));
      const found = LENGTHS.filter((n) => ratio[n]), last = found.at(-1);
      const from = found[found.findLastIndex((n) => ratio[n] <= 1) + 1];
      return from
        ? `${MODES[mode].toLowerCase()} is faster than softmax from ${text(from)} tokens on, ${
          times(ratio[last])
        } at ${text(last)}`
        : `${MODES[mode].toLowerCase()} is slower at ${text(last)}`;
    }

    function say() {
      if (BrowserTimes.rows().length) return verdict();
      return `In this book’s code ${Object.keys(MODES).map(ahead).join("; ")}. And in your browser?`;
    }

    function render(words = "") {
      const measured = BrowserTimes.rows().length > 0, ratios = lines().flatMap(({ ys }) => ys);
      line.textContent = words || say();
      start.textContent = stop ? "Stop" : measured ? "Measure again" : "Measure this browser";
      save.hidden = forget.hidden = Boolean(stop) || !measured;
      legend();
      plot.show({
        x: axis("length", "tokens", "Sequence length (tokens, log scale)", 6, [210, 20000], { log: 2 }),
        y: axis("ratio", "times", "Times as fast as softmax (log scale)", 3, decades([0.1, 100, ...ratios]), {
          log: 10,
        }),
        mark: "line+dot",
        lines: lines(),
        dots: lines(),
        marks,
        said: `How many times faster than softmax, against the length. ${say()}`,
      }, { glide: false });
    }

    stage.append(names, plot.node, Stage.buttons("Measure", start, save, forget), line);
    BrowserTimes.listen(() => {
      render(stop ? line.textContent : "");
      join();
    });
    addEventListener("figures-ready", join);
    join();
    render();
    return {};
  });
}
