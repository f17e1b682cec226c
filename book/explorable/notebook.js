/* A figure in a notebook: the page's own HTML and scripts in a cell's output. Before this script
   notebook.py puts the others, in a module that anywidget loads. All figures of a kernel share a
   separate model with plotly. */
const { adopt, release } = window.Explorables;

/* Whether the theme is dark, by the colour of its text: front ends have many names for themes. */
function isDark(color) {
  const [r, g, b] = window.ExplorableDraw.rgba(color).match(/\d+/g).map(Number);
  return 0.299 * r + 0.587 * g + 0.114 * b > 127;
}

/* URL of plotly's code for a script element; the code is fetched once per page. */
async function addressOfPlotly(model) {
  const library = await model.widget_manager.get_model(model.get("library"));
  return URL.createObjectURL(new Blob([library.get("code")], { type: "text/javascript" }));
}

/* In a form, or the radio buttons of a figure that is shown twice would form one group. */
function makeRoot() {
  const root = document.createElement("form");
  root.className = "explorable-notebook";
  root.addEventListener("submit", (event) => event.preventDefault());
  root.dataset.lmSuppressShortcuts = "true"; // arrow keys are for the figure, not for the notebook
  return root;
}

function render({ model, el }) {
  const root = makeRoot();
  el.append(root);
  let figure = null;

  /* Shows the figure as Python last wrote it, with the reader's settings. */
  const show = () => {
    const set = figure?.state;
    if (figure) release(figure);
    root.innerHTML = model.get("html");
    // Pages and result files are beside the page, but not beside a notebook.
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

  /* A figure that is scrolled out of sight has no size and cannot be drawn until it is back. */
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
