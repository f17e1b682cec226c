/* Before anything is painted: light or dark, as the reader has chosen on an earlier page, or
   as the system is set. The theme's own script comes later and keeps both. */
(() => {
  const { dataset } = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.mode = localStorage.getItem("mode") || "auto";
  dataset.theme = dataset.mode === "auto" ? (dark ? "dark" : "light") : dataset.mode;
  // The fonts of the first screen, before the styles that name them are here. From a file, where
  // they are at hand anyway, a preload would be refused.
  if (!location.protocol.startsWith("http")) return;
  const { src, dataset: { fonts } } = document.currentScript;
  for (const font of fonts.split(" ")) {
    const link = document.createElement("link");
    Object.assign(link, { rel: "preload", as: "font", type: "font/woff2", crossOrigin: "", href: new URL(font, src).href });
    document.head.append(link);
  }
})();
