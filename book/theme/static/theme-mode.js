/* Before anything is painted: light or dark, as the reader has chosen on an earlier page, or
   as the system is set. The theme's own script comes later and keeps both. */
(() => {
  const { dataset } = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.mode = localStorage.getItem("mode") || "auto";
  dataset.theme = dataset.mode === "auto" ? (dark ? "dark" : "light") : dataset.mode;
  const { src, dataset: { fonts } } = document.currentScript;
  const add = (name, about) => {
    const href = new URL(name, src).href;
    document.head.append(Object.assign(document.createElement("link"), { href, ...about }));
  };
  if (location.protocol.startsWith("http")) {
    // The fonts of the first screen, before the styles that name them are here.
    for (const font of fonts.split(" ")) {
      add(font, { rel: "preload", as: "font", type: "font/woff2", crossOrigin: "" });
    }
  } else {
    // From a file they are at hand, though a busy machine may be late with them.
    addEventListener("DOMContentLoaded", () => add("fonts-at-hand.css", { rel: "stylesheet" }));
  }
})();
