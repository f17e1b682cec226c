/* The one model of a chart: what its data and the state of its controls show. It knows no page and
   no plotly. The page's script asks it in the reader's browser. While the book is built, model.py
   asks it in an embedded V8, for the still picture, the table and the first readout. */
(function () {
  "use strict";
  const TABLE_ROWS = 160; // in all, and at least 4 a series; every point is in the CSV

  function decode(spec) {
    const arrays = spec.arrays.map((values) =>
      Array.isArray(values)
        ? values
        : Array.from({ length: values.count }, (_, i) => values.from + values.step * i)
    );
    for (const curve of spec.curves) {
      for (const name in curve.columns) curve.columns[name] = arrays[curve.columns[name]];
    }
    return spec;
  }

  function defaults(spec) {
    const state = { level: null };
    for (const control of spec.controls) state[control.name] = control.default;
    return state;
  }

  function resolve(spec, state) {
    const pick = (name) => spec.axes[name].find((axis) => axis.column === state[name]) || spec.axes[name][0];
    const x = pick("x"), y = pick("y");
    const filters = spec.controls.filter((control) => control.kind !== "check" && !control.axis);
    const toggles = spec.controls.filter((control) => control.kind === "check");
    const has = (curve, key) => Object.hasOwn(curve.keys, key);
    // A curve without the key is not subject to the control: a ceiling, or this computer.
    const eligible = spec.curves.filter((curve) =>
      filters.every(({ name }) => !has(curve, name) || curve.keys[name] === state[name])
    );
    const needed = [x, y].flatMap((axis) => [axis.column, axis.low, axis.high]).filter(Boolean);
    const shown = eligible.filter((curve) =>
      toggles.every(({ name }) => !has(curve, name) || state[name].includes(curve.keys[name]))
      && needed.every((column) => Object.hasOwn(curve.columns, column))
    );
    const measured = eligible.filter((curve) => curve.role !== "ceiling");
    const unmeasured = {};
    for (const { name, options } of toggles) {
      unmeasured[name] = options.map(([value]) => value)
        .filter((value) => measured.every((curve) => curve.keys[name] !== value));
    }
    const drawn = shown.some((curve) => curve.role !== "ceiling");
    const low = y.low || x.low, high = y.high || x.high;
    const counts = (axis) =>
      !axis.unit && shown.every(({ columns }) => columns[axis.column].every(Number.isInteger));
    return {
      x,
      y,
      counts: { x: counts(x), y: counts(y) },
      unmeasured,
      empty: drawn ? "" : measured.length ? "unselected" : "unmeasured",
      traces: shown.map((curve) => ({
        curve,
        x: curve.columns[x.column],
        y: curve.columns[y.column],
        low: low ? curve.columns[low] : null,
        high: high ? curve.columns[high] : null,
      })),
    };
  }

  function runs(view) {
    return view.traces.map((trace) => trace.curve).filter((curve) => curve.role !== "ceiling");
  }

  function extent(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return [low, high];
  }

  function crossingLevel(spec, view, state) {
    if (state.level !== null) return state.level;
    const { column } = spec.crossing;
    const ends = runs(view).map((curve) => extent(curve.columns[column]));
    if (!ends.length) return null;
    const { digits } = spec.axes.y.find((axis) => axis.column === column);
    return eased(Math.max(...ends.map(([low]) => low)), digits - 1);
  }

  /* A little easier than the noisy best, and a rounder number. */
  function eased(value, digits) {
    if (value === 0) return 0;
    const step = 10 ** (Math.floor(Math.log10(Math.abs(value))) - digits + 1);
    return Number((Math.ceil(value / step - 1e-6) * step).toPrecision(12));
  }

  function crossingShare(ys, level) {
    const i = ys.findIndex((y) => y <= level);
    if (i < 0) return null;
    return [i, i === 0 ? 1 : (level - ys[i - 1]) / (ys[i] - ys[i - 1])];
  }

  function crossings(spec, view, state) {
    const level = crossingLevel(spec, view, state);
    if (level === null) return { level, rows: [], sentence: "" };
    const rows = runs(view).map((curve) => {
      const found = crossingShare(curve.columns[spec.crossing.column], level);
      const at = {};
      for (const axis of spec.axes.x) at[axis.column] = pointAt(curve.columns[axis.column], found, axis);
      const reached = spec.axes.x.map((axis) => quantity(at[axis.column], axis)).join(" · ");
      return { curve, at, text: found ? reached : "not reached" };
    });
    return { level, rows, sentence: ratioSentence(spec, rows) };
  }

  function pointAt(values, found, axis) {
    if (!found) return null;
    const [i, share] = found;
    if (i === 0) return values[0];
    const value = values[i - 1] + share * (values[i] - values[i - 1]);
    // A count has no fractions: a level is reached at an update, not between two.
    const counted = !axis.unit && Number.isInteger(values[i - 1]) && Number.isInteger(values[i]);
    return counted ? Math.ceil(value) : value;
  }

  function ratioSentence(spec, rows) {
    const pair = spec.crossing.compare
      .map((value) => rows.filter((row) => row.curve.keys[spec.color] === value));
    if (pair.some((found) => found.length !== 1)) return "";
    const [[first], [second]] = pair;
    const parts = spec.axes.x
      .filter(({ column }) => first.at[column] !== null && second.at[column])
      .map((axis) => `${formatNumber(first.at[axis.column] / second.at[axis.column], 2)}× the ${axis.noun}`);
    const name = second.curve.name;
    const start = name.slice(0, 2);
    const acronym = start === start.toUpperCase() && start !== start.toLowerCase();
    const inside = acronym ? name : name[0].toLowerCase() + name.slice(1);
    return parts.length ? `${first.curve.name} needs ${parts.join(" and ")} of ${inside}.` : "";
  }

  const superscript = (digits) =>
    String(digits).replace(/[-0-9]/g, (mark) => (mark === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[mark]));
  const grouped = (text) => text.replace(/\B(?=(\d{3})+$)/g, ",");

  function formatNumber(value, digits = 4) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    let text;
    if (Number.isInteger(value) && size < 1e15) text = grouped(String(size));
    else if (size >= 10 ** (digits - 1)) text = grouped(String(Math.floor(size + 0.5)));
    else if (size >= 1e-4) text = size.toPrecision(digits);
    else {
      const [mantissa, exponent] = size.toExponential(digits - 1).split("e");
      text = `${mantissa}×10${superscript(Number(exponent))}`;
    }
    return value < 0 ? `−${text}` : text;
  }

  function quantity(value, axis) {
    if (typeof value === "string") return value;
    return `${formatNumber(value, axis.digits)} ${axis.unit || axis.noun}`;
  }

  function interpolate(xs, ys, x) {
    if (!(xs[0] <= x && x <= xs[xs.length - 1])) return null;
    let low = 0, high = xs.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] >= x) high = middle;
      else low = middle + 1;
    }
    if (low === 0) return ys[0];
    const share = (x - xs[low - 1]) / (xs[low] - xs[low - 1]);
    return ys[low - 1] + share * (ys[low] - ys[low - 1]);
  }

  function logTicks(low, high, base, most) {
    if (!(low > 0 && high < Infinity)) {
      throw new RangeError(`logTicks: expected 0 < low <= high, got ${low}, ${high}`);
    }
    const log = (value) => Math.log(value) / Math.log(base);
    const steps = base === 10 && high / low < 100 ? [1, 2, 5] : [1];
    const values = [];
    for (let power = Math.floor(log(low)) - 1; power <= Math.ceil(log(high)) + 1; power++) {
      for (const step of steps) values.push(step * base ** power);
    }
    const inside = values.filter((value) => value >= low * 0.999999 && value <= high * 1.000001);
    const every = Math.max(1, Math.ceil(inside.length / Math.max(most, 2)));
    return inside.filter((_, i) => i % every === 0)
      .map((value) => [value, tickText(value, base === 2 ? 1024 : 1000)]);
  }

  /* whole: of a count, which has nothing between two. */
  function linearTicks(low, high, most, whole = false) {
    if (!(high > low && high - low < Infinity)) {
      throw new RangeError(`linearTicks: expected low < high, got ${low}, ${high}`);
    }
    const rough = (high - low) / Math.max(most, 2);
    const size = 10 ** Math.floor(Math.log10(rough));
    const steps = [1, 2, 2.5, 5, 10].map((times) => times * size);
    const step = whole && rough < 1
      ? 1
      : steps.find((one) => one >= rough * 0.999 && (!whole || Number.isInteger(one)));
    const places = step >= 1 && Number.isInteger(step)
      ? 0
      : -Math.floor(Math.log10(size)) + (step / size === 2.5 ? 1 : 0) - (step / size === 10 ? 1 : 0);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) {
      const value = Number((i * step).toPrecision(12));
      const [whole, part] = Math.abs(value).toFixed(Math.max(0, places)).split(".");
      ticks.push([value, (value < 0 ? "−" : "") + grouped(whole) + (part ? `.${part}` : "")]);
    }
    return ticks;
  }

  function tickText(value, thousand) {
    const plain = (number) => {
      const text = number.toFixed(4).replace(/\.?0+$/, "");
      return text.includes(".") ? text : grouped(text);
    };
    for (const [power, suffix] of [[3, "G"], [2, "M"], [1, "k"]]) {
      if (value >= thousand ** power && (thousand === 1024 || power > 1 || value >= 10000)) {
        return plain(value / thousand ** power) + suffix;
      }
    }
    return value >= 1e-4 ? plain(value) : `10${superscript(Math.round(Math.log10(value)))}`;
  }

  /* Points of the visible curves, thinned: {head, rows}, each a list of texts, the first a name. */
  function table({ x, y, traces }) {
    const cell = (value, axis) => (typeof value === "string" ? value : formatNumber(value, axis.digits));
    const spread = traces.some((trace) => trace.low);
    const most = Math.max(4, Math.floor(TABLE_ROWS / Math.max(1, traces.length)));
    const rows = traces.flatMap(({ curve, ...trace }) => {
      const every = Math.ceil(trace.x.length / most);
      return trace.x.flatMap((_, i) => (i % every ? [] : [[
        curve.name,
        cell(trace.x[i], x),
        cell(trace.y[i], y),
        ...(spread ? [cell(trace.low?.[i], y), cell(trace.high?.[i], y)] : []),
      ]]));
    });
    return { head: ["Series", x.caption, y.caption, ...(spread ? ["from", "to"] : [])], rows };
  }

  /* All curves, not only the visible ones, a row a point. */
  function csv(spec) {
    const union = (part) => [...new Set(spec.curves.flatMap((curve) => Object.keys(curve[part])))];
    const keys = union("keys"), columns = union("columns");
    const quote = (cell) => {
      const text = cell === undefined ? "" : String(cell);
      return /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    };
    const rows = [["series", ...keys, ...columns, "source"]];
    for (const curve of spec.curves) {
      const count = Object.values(curve.columns)[0].length;
      for (let i = 0; i < count; i++) {
        rows.push([
          curve.name,
          ...keys.map((key) => curve.keys[key]),
          ...columns.map((column) => curve.columns[column]?.[i]),
          curve.source,
        ]);
      }
    }
    return rows.map((row) => row.map(quote).join(",")).join("\r\n") + "\r\n";
  }

  globalThis.ExplorableModel = {
    decode,
    defaults,
    resolve,
    crossings,
    extent,
    formatNumber,
    quantity,
    interpolate,
    logTicks,
    linearTicks,
    table,
    csv,
  };
})();
