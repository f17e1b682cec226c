/* Before anything is painted: light or dark, as the reader has chosen on an earlier page, or
   as the system is set. The theme's own script comes later and keeps both. */
(() => {
  const { dataset } = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.mode = localStorage.getItem("mode") || "auto";
  dataset.theme = dataset.mode === "auto" ? (dark ? "dark" : "light") : dataset.mode;
})();
