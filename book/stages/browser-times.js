"use strict";

/* Times measured in the reader's browser. They are in localStorage, if the browser allows it, and
   listeners are called at every change. A row: {mode, pass, length, seconds, low, high}; seconds is
   null if the measurement was stopped. One head of width 64. */

window.BrowserTimes ??= (() => {
  const KEY = "attention-without-the-exponential:browser-times";
  const HEAD = ["mode", "pass", "length", "seconds", "low", "high"];
  const MODES = ["softmax", "attention", "recurrent", "chunked", "linear"];
  const listeners = [];

  const measured = (value) => value === null || (Number.isFinite(value) && value > 0);
  const whole = (row) =>
    MODES.includes(row?.mode) && ["forward", "token"].includes(row.pass) && Number.isInteger(row.length)
    && row.length > 0 && [row.seconds, row.low, row.high].every(measured);

  const stored = Elements.recalled(KEY);
  let rows = Array.isArray(stored) && stored.every(whole) ? stored : [];

  function put(fresh) {
    rows = fresh;
    Elements.keep(KEY, rows);
    for (const listener of listeners) listener();
  }

  /* {length: seconds} of the measurements that were not stopped. */
  const times = (pass, mode) =>
    Object.fromEntries(
      rows.filter((row) => row.pass === pass && row.mode === mode && row.seconds !== null)
        .map(({ length, seconds }) => [length, seconds]),
    );

  const csv = () =>
    [HEAD, ...rows.map((row) => HEAD.map((key) => row[key]))].map((row) => `${row}\r\n`).join("");

  return { rows: () => rows, put, times, csv, listen: (listener) => listeners.push(listener) };
})();
