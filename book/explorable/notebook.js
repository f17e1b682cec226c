/* The notebook's face: the page's own HTML and scripts in a cell's output. notebook.py puts those
   scripts before this one, in a module that anywidget loads, and plotly into a model of its own,
   which all figures of a kernel share. */
const { adopt, release } = window.Explorables;

/* Front ends name their themes in many ways; the text is light on dark or dark on light. */
function isDark(color) {
  const [r, g, b] = window.ExplorableDraw.rgba(color).match(/\d+/g).map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b > 127;
}

/* Where the figure's library lies, for a script element; nobody asks twice while one page lives. */
async function addressOfPlotly(model) {
  const library = await model.widget_manager.get_model(model.get("library"));
  return URL.createObjectURL(new Blob([library.get("code")], { type: "text/javascript" }));
}

/* In a form of its own, or the radio buttons of one figure shown twice would be one group. */
function makeRoot() {
  const root = document.createElement("form");
  root.className = "explorable-notebook";
  root.addEventListener("submit", (event) => event.preventDefault());
  root.dataset.lmSuppressShortcuts = "true"; // arrow keys are the figure's, not the notebook's
  return root;
}

function render({ model, el }) {
  const root = makeRoot();
  el.append(root);
  let figure = null;

  /* The figure as Python last wrote it, as the reader had set it. */
  const show = () => {
    const set = figure?.state;
    if (figure) release(figure);
    root.innerHTML = model.get("html");
    // Pages and result files lie beside the page; a notebook has them elsewhere, or not at all.
    for (const link of root.querySelectorAll('figcaption a:not([href^="http"])')) {
      link.replaceWith(...link.childNodes);
    }
    figure = adopt(root.firstElementChild);
    if (set) figure.set(set);
    window.explorablePlotly ||= addressOfPlotly(model);
    window.explorablePlotly.then((address) => figure.wake(address), (error) => {
      window.explorablePlotly = null;
      console.error(`the figure stays still: ${error.message}`);
    });
  };

  /* A figure that is scrolled away has no size, and cannot be drawn until it is back. */
  const takeTheme = () => {
    const { color } = getComputedStyle(root);
    if (!root.clientWidth || color === root.dataset.ink) return;
    root.dataset.ink = color;
    root.dataset.theme = isDark(color) ? "dark" : "light";
    if (figure.drawn) figure.draw();
  };

  show();
  model.on("change:html", show);
  const seen = new IntersectionObserver(takeTheme), themed = new MutationObserver(takeTheme);
  seen.observe(root);
  for (const above of [document.documentElement, document.body]) themed.observe(above, { attributes: true });
  return () => {
    seen.disconnect();
    themed.disconnect();
    release(figure);
  };
}

export default { render };
