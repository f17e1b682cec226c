/* What charts and stages share: elements with their attributes, listeners and children, the keys of
   a slider, files, and values that stay in the browser. */
window.Elements = (() => {
  "use strict";

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value != null) node.setAttribute(name, value);
    }
    node.append(...children.flat().filter((child) => child != null));
    return node;
  }

  const element = (tag, attributes = {}, ...children) =>
    fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) =>
    fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  const button = (text, act) => element("button", { type: "button", onclick: act }, text);

  /* A number with commas. toLocaleString would load tables of languages: tens of milliseconds. */
  function grouped(value) {
    const [whole, decimals] = String(value).split(".");
    return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (decimals ? `.${decimals}` : "");
  }

  const KEYS = new Map([
    ...["ArrowLeft", "ArrowDown"].map((key) => [key, () => -1]),
    ...["ArrowRight", "ArrowUp"].map((key) => [key, () => 1]),
    ["PageDown", (page) => -page],
    ["PageUp", (page) => page],
    ["Home", () => -Infinity],
    ["End", () => Infinity],
  ]);
  /* Steps of a slider for a key's event, which is then used; 0 for other keys. */
  function keySteps(event, page = 10) {
    const steps = KEYS.get(event.key)?.(page) ?? 0;
    if (steps) event.preventDefault();
    return steps;
  }

  /* Loads a script of the book; returns a promise. */
  const load = (src) =>
    new Promise((resolve, reject) => {
      const onerror = () => reject(new Error(`${src.split("/").at(-1)} is not beside this page`));
      document.head.append(element("script", { src, onload: resolve, onerror }));
    });

  /* Saves a text as a file of the reader's. */
  function save(text, name) {
    const href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
    element("a", { href, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(href), 10000);
  }

  /* A value that stays in this browser. Another version of the book may have written it. Without
     localStorage it lasts until the page is left. */
  function recalled(key) {
    try {
      return JSON.parse(localStorage.getItem(key));
    } catch {
      return null;
    }
  }
  function keep(key, value) {
    try {
      localStorage.setItem(key, JSON.stringify(value));
    } catch {
      // The browser does not allow it.
    }
  }

  /* Keeps an element from getting shorter with a shorter answer: what stands below it would jump
     while a reader tries one control after another. Folding a part, or another width, gives space
     back. */
  function keepHeight(node) {
    const release = () => node.style.removeProperty("min-height");
    let before = 0;
    node.addEventListener("toggle", release, true);
    new ResizeObserver(([{ contentRect: { width } }]) => {
      if (width !== before) release();
      before = width;
      node.style.minHeight = `${node.getBoundingClientRect().height}px`;
    }).observe(node);
  }

  return { button, element, grouped, keep, keepHeight, keySteps, load, recalled, save, svg };
})();
