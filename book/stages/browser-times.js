"use strict";

/* Times measured in the reader's browser, kept in it where it lets a page keep anything, and
   told to all that draw it. A row: {mode, pass, length, seconds, low, high}; seconds is null where
   the measurement was stopped. One head of width 64. */

window.BrowserTimes ??= (() => {
  const KEY = "attention-without-the-exponential:browser-times";
  const HEAD = ["mode", "pass", "length", "seconds", "low", "high"];
  const MODES = ["softmax", "attention", "recurrent", "chunked", "linear"];
  const listeners = [];

  const measured = (value) => value === null || (Number.isFinite(value) && value > 0);
  const whole = (row) =>
    MODES.includes(row?.mode) && ["forward", "token"].includes(row.pass) && Number.isInteger(row.length)
    && row.length > 0 && [row.seconds, row.low, row.high].every(measured);

  /* Kept times may be another version's, or anybody's. */
  function kept() {
    try {
      const found = JSON.parse(localStorage.getItem(KEY));
      return Array.isArray(found) && found.every(whole) ? found : [];
    } catch {
      return [];
    }
  }

  let rows = kept();

  function put(fresh) {
    rows = fresh;
    try {
      if (rows.length) localStorage.setItem(KEY, JSON.stringify(rows));
      else localStorage.removeItem(KEY);
    } catch {
      // A browser that keeps nothing shows them until the page is left.
    }
    for (const listener of listeners) listener();
  }

  /* {length: seconds} of what was not stopped. */
  const times = (pass, mode) =>
    Object.fromEntries(
      rows.filter((row) => row.pass === pass && row.mode === mode && row.seconds !== null)
        .map(({ length, seconds }) => [length, seconds]),
    );

  const csv = () =>
    [HEAD, ...rows.map((row) => HEAD.map((key) => row[key]))].map((row) => `${row}\r\n`).join("");

  return { rows: () => rows, put, times, csv, listen: (listener) => listeners.push(listener) };
})();
