/* Sortable tables: those in cells tagged `sortable`. Each title becomes a button; a second press
   reverses the order. Rows without a number come last. In cells tagged `filterable` too, a text
   field hides rows that do not contain its words. */
(() => {
  "use strict";

  const DASHES = /^[–—-]?$/;
  const DATE = /^\d{4}-\d\d-\d\d/;

  /* A cell's key for sorting: the number it begins with, otherwise its words. Dates are words. */
  function key(cell) {
    const text = cell.textContent.trim();
    if (DASHES.test(text)) return null;
    if (DATE.test(text)) return text;
    const number = text.replace(/,/g, "").match(/^-?\d+(\.\d+)?/);
    return number ? Number(number[0]) : text.toLowerCase();
  }

  function compare(a, b) {
    if (typeof a === typeof b) return a < b ? -1 : Number(a > b);
    return typeof a === "number" ? -1 : 1;
  }

  function sort(table, column, falling) {
    const rows = [...table.tBodies[0].rows];
    const keyed = rows.map((row) => [key(row.cells[column]), row]);
    const full = keyed.filter(([value]) => value !== null);
    const empty = keyed.filter(([value]) => value === null);
    full.sort(([a], [b]) => (falling ? -1 : 1) * compare(a, b));
    table.tBodies[0].append(...[...full, ...empty].map(([, row]) => row));
  }

  function install(table) {
    const titles = [...table.tHead.rows[0].cells];
    titles.forEach((title, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort-button";
      button.append(...title.childNodes);
      title.replaceChildren(button);
      button.addEventListener("click", () => {
        const falling = title.getAttribute("aria-sort") === "ascending";
        titles.forEach((other) => other.removeAttribute("aria-sort"));
        title.setAttribute("aria-sort", falling ? "descending" : "ascending");
        sort(table, column, falling);
      });
    });
  }

  function filter(table) {
    const rows = [...table.tBodies[0].rows].map((row) => [row, row.textContent.toLowerCase()]);
    const label = document.createElement("label"), input = document.createElement("input");
    const count = document.createElement("span"), line = document.createElement("p");
    input.type = "search";
    label.append("Rows that contain ", input);
    count.setAttribute("role", "status");
    line.className = "table-filter";
    line.append(label, count);
    const show = () => {
      const wanted = input.value.toLowerCase().split(/\s+/);
      let shown = 0;
      for (const [row, text] of rows) {
        row.hidden = !wanted.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      count.textContent = `${shown} of ${rows.length}`.replace(/\B(?=(\d{3})+\b)/g, ",");
    };
    input.addEventListener("input", show);
    // Not in the cell: with the field in it, Chromium lays out all rows at once.
    table.closest(".cell").before(line);
    show();
  }

  const ready = () => {
    document.querySelectorAll(".tag_sortable table").forEach(install);
    document.querySelectorAll(".tag_filterable table").forEach(filter);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", ready);
  else ready();
})();
