/* Loads the page's other scripts, in the order of `data-scripts`, after the first paint. They
   measure positions, which makes the browser lay out the page, and the text does not wait for that.
   This script is deferred: when it runs, page and styles are loaded. */
(() => {
  // Background tabs are not painted, and slow devices paint late.
  const UNPAINTED_MS = 5000;
  const { src, dataset } = document.currentScript;
  let waiting = dataset.scripts.split(" ");
  const run = () => {
    for (const name of waiting) {
      const script = document.createElement("script");
      script.src = new URL(name, src).href;
      script.async = false;
      document.head.append(script);
    }
    waiting = [];
  };
  new PerformanceObserver((list) => {
    if (list.getEntriesByName("first-contentful-paint").length) run();
  }).observe({ type: "paint", buffered: true });
  addEventListener("load", () => setTimeout(run, UNPAINTED_MS));
})();
