/* Every other script of the page, in the order in which this one's data name them, once the text
   is painted: they read where things stand, which has the page laid out, and no text waits for
   that. Deferred, this one runs when page and styles are here. */
(() => {
  // A tab that nobody looks at is not painted. A slow device paints late, and no sooner for scripts.
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
