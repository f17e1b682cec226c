"use strict";

/* lsa.cost in JavaScript: FLOPs, bytes and steps of a mode, and the least time for them. Browser
   tests compare both. One head of one sequence has K = V = d; states are 32-bit numbers. */

window.Costs ??= (() => {
  const STATE = 4, TILE = 128;

  /* FLOPs, bytes, steps, and `ends`, the bytes of inputs and outputs alone, of "attention" (softmax
     has the same), "recurrent" or "chunked" mode. t tokens, d features, c tokens a chunk, item
     bytes a number. */
  function mode(name, { t, d, c, heads = 1, item = 2 }) {
    const tokens = 4 * t * d * item, past = 4 * t * d * d;
    let flops = past, bytes = tokens, steps = t;
    if (name === "attention" || name === "softmax") {
      // Each tile of queries reads all keys and values up to its own end.
      const full = Math.floor(t / TILE), rest = t % TILE ? t : 0;
      const again = (TILE * full * (full + 1)) / 2 + rest - t;
      [flops, bytes, steps] = [2 * t * (t + 1) * d, tokens + again * 2 * d * item, 1];
    } else if (name === "chunked") {
      const n = Math.ceil(t / c), tail = t - (n - 1) * c;
      const inside = ((n - 1) * c * (c + 1) + tail * (tail + 1)) * 2 * d;
      [flops, bytes, steps] = [past + inside, tokens + 2 * n * STATE * (d * d + d), n];
    }
    return { flops: flops * heads, bytes: bytes * heads, steps, ends: tokens * heads };
  }

  /* The longest of the three times, which may overlap: {seconds, by}. The only traffic counted is
     that of inputs and outputs. Speeds in FLOP/s and B/s, `step` in seconds. */
  function least({ flops, ends, steps }, speeds) {
    const bills = {
      arithmetic: flops / speeds.flops,
      "memory traffic": ends / speeds.bytes,
      waiting: steps * speeds.step,
    };
    const by = Object.keys(bills).reduce((a, b) => (bills[b] > bills[a] ? b : a));
    return { seconds: bills[by], by };
  }

  /* Numbers for prose. */
  const digits = (value, most = 3) => Elements.grouped(Number(value.toPrecision(most)));
  const inUnits = (units) => (value) => {
    const [one, unit] = units.find(([size]) => value >= size) || units.at(-1);
    return `${digits(value / one)} ${unit}`;
  };
  const text = {
    digits,
    seconds: inUnits([[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]),
    flops: inUnits([[1e12, "TFLOP"], [1e9, "GFLOP"], [1e6, "MFLOP"]]),
    bytes: inUnits([[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]),
  };

  /* The devices of a page, data from its figures module: element #devices-data. */
  const devices = () => JSON.parse(document.getElementById("devices-data")?.textContent ?? "[]");

  /* The length that all stages of a page show: moving one calls the others' listeners. */
  const listeners = [];
  const length = {
    listen: (listener) => listeners.push(listener),
    tell: (t, from) => listeners.filter((one) => one !== from).forEach((one) => one(t)),
  };

  return { mode, least, text, devices, length };
})();
