/* Sets the colour scheme before the first paint: light or dark, as the reader chose on an earlier
   page, or as in the system. The theme's own script follows and keeps both values. */
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
    // Preload the fonts of the first screen, before the styles that name them are loaded.
    for (const font of fonts.split(" ")) {
      add(font, { rel: "preload", as: "font", type: "font/woff2", crossOrigin: "" });
    }
  } else {
    // Opened from a file, a page is shown with its letters: they are read after the first layout, and
    // the text would move. These styles accept them late.
    const show = () => document.documentElement.style.removeProperty("visibility");
    document.documentElement.style.visibility = "hidden";
    setTimeout(show, 1000);
    const onload = () => document.body.offsetHeight && document.fonts.ready.then(show);
    addEventListener("DOMContentLoaded", () => add("fonts-at-hand.css", { rel: "stylesheet", onload }));
  }
})();
