/* Keeps a figure, chart or stage in sight together with the words that set it. If the margin beside
   the text is wide enough, the figure is pinned there, otherwise in the top third of the screen.
   That happens when a link is pressed and, on a wide screen, when it is read. The figure returns to
   its place when the reader leaves the words, goes back to them, or comes to that place. */
window.FigurePin = (function () {
  "use strict";
  const SHOWN = 0.6; // of a figure's picture; if so much is on the screen, it is not pinned
  const GAP = 8; // px around a pinned figure
  const EDGE = 12; // px between its border and what is in it
  const NARROWEST = 270, WIDEST = 480; // px; narrow phones have 270
  const LOWEST = 300; // px, the least height of the third of the screen
  const SENTENCE = 64; // px; words may begin so far above the link that ends them
  const FIGURES = "figure.explorable, .stage-frame";
  const { button, element } = Elements;
  let pinned = null, looking = null;
  let closed = false; // the reader wants only figures that are asked for

  const pictureOf = (figure) => figure.querySelector(".explorable-frame, .stage") ?? figure;

  const headEnd = () => document.querySelector(".bd-header-article")?.getBoundingClientRect().bottom ?? 0;

  /* Share of `figure`'s picture on the screen, of as much as the screen can show. */
  function share(figure) {
    const { top, bottom, height } = pictureOf(figure).getBoundingClientRect();
    const head = headEnd();
    const seen = Math.min(bottom, innerHeight) - Math.max(top, head);
    return seen / Math.min(height, innerHeight - head);
  }

  /* Whether another figure is on the screen, beside which this one would be taken for a part of it. */
  const anotherSeen = (figure) =>
    [...document.querySelectorAll(FIGURES)].some((one) => one !== figure && share(one) >= SHOWN);

  /* Room beside the text; null if it is narrow or has a note or a wide table. */
  function margin() {
    const text = document.querySelector(".bd-article-container")?.getBoundingClientRect();
    const width = document.documentElement.clientWidth - text?.right - GAP;
    if (!(width >= NARROWEST) || document.body.classList.contains("margin-in-use")) return null;
    const top = headEnd() + GAP;
    return {
      beside: true,
      left: text.right,
      width: Math.min(width, WIDEST),
      top,
      room: innerHeight - top - GAP,
    };
  }

  /* The top third of the screen, with the words scrolled below it; the bottom if they cannot be. */
  function third(figure, link) {
    const { left, width } = figure.getBoundingClientRect();
    const top = headEnd() + GAP, room = Math.max(LOWEST, (innerHeight - top) / 3);
    const covered = top + room + SENTENCE - link.getBoundingClientRect().top;
    const low = covered > scrollY;
    if (!low && covered > 0) scrollBy({ top: -covered, behavior: "instant" });
    return { low, left: left - EDGE, width: width + 2 * EDGE, top, room };
  }

  /* A placeholder of its size, so that the page does not move. From here until the figure is pinned
     nothing may be measured: the browser would keep the words where both elements put them. */
  function holdPlace(figure) {
    const hole = element("div"), place = element("div", {}, hole);
    const { height, top } = figure.getBoundingClientRect();
    const { marginTop, marginBottom } = getComputedStyle(figure);
    const picture = pictureOf(figure).getBoundingClientRect();
    Object.assign(place.style, { height: `${height}px`, marginTop, marginBottom, display: "flow-root" });
    Object.assign(hole.style, { height: `${picture.height}px`, marginTop: `${picture.top - top}px` });
    figure.before(place);
    return place;
  }

  /* Hides the figure while it moves: movement out of sight does not count as a layout shift. */
  function moveUnseen(figure) {
    if (figure.contains(document.activeElement)) return;
    figure.style.visibility = "hidden";
    requestAnimationFrame(() => requestAnimationFrame(() => (figure.style.visibility = "")));
  }

  /* kept: the figure keeps the settings of the words. */
  function release(kept = false) {
    if (!pinned) return;
    const { figure, place, bar, watches, words, leave } = pinned;
    pinned = null;
    moveUnseen(figure);
    for (const watch of [...watches, words]) watch.disconnect();
    place.remove();
    bar.remove();
    figure.classList.remove("figure-pinned", "figure-pinned-low");
    document.body.classList.remove("figure-beside");
    leave?.(kept);
  }

  /* A button that goes back to the words. `leave` leaves the figure and returns the words' link. */
  function wayBack(block, leave) {
    const back = button("Back to the text", () => {
      const link = leave();
      link.scrollIntoView({ block });
      link.focus({ preventScroll: true });
    });
    back.className = "figure-back";
    return back;
  }

  /* Scrolls to the figure's own place, with its settings, and offers a way back to the words. */
  function goHome() {
    const { figure, link } = pinned;
    release(true);
    figure.style.visibility = "";
    figure.scrollIntoView({ block: "start" });
    figure.querySelector(".figure-back")?.remove();
    const back = wayBack("center", () => {
      back.remove();
      return link;
    });
    figure.prepend(back);
    back.focus({ preventScroll: true });
  }

  /* The figure is watched until the reader does something else. Parts of the page far from the
     screen have an estimated height. When they come near they may push the figure off the screen. */
  function show(figure, link) {
    stopLooking();
    closed = false;
    if (pinned?.figure === figure) {
      pinned.leave?.(true);
      pinned.leave = null;
      follow(link);
      return;
    }
    release();
    const pinUnlessSeen = () => {
      if (share(figure) >= SHOWN) return;
      stopLooking();
      pin(figure, link, margin() ?? third(figure, link), null);
    };
    looking = new ResizeObserver(pinUnlessSeen);
    looking.observe(document.body);
    pinUnlessSeen();
  }

  function stopLooking() {
    looking?.disconnect();
    looking = null;
  }

  /* Other words about the same figure are read now. */
  function follow(link) {
    pinned.words?.disconnect();
    pinned.link = link;
    pinned.words = new IntersectionObserver((seen) => seen.at(-1).isIntersecting || release());
    pinned.words.observe(link.closest("p, li, td, dd") ?? link);
  }

  function pin(figure, link, { beside, low, left, width, top, room }, leave) {
    const tall = pictureOf(figure).getBoundingClientRect().height, screen = innerHeight - headEnd();
    const place = holdPlace(figure);
    const close = () => {
      const { link } = pinned;
      closed = true;
      release();
      return link;
    };
    const back = leave ? button("Close", close) : wayBack("nearest", close);
    const bar = element("div", { class: "figure-pin-bar" }, button("Go to the figure", goHome), back);
    figure.prepend(bar);
    for (const [name, value] of Object.entries({ left, width, top, room })) {
      figure.style.setProperty(`--pin-${name}`, `${value}px`);
    }
    figure.classList.add("figure-pinned");
    figure.classList.toggle("figure-pinned-low", Boolean(low));
    document.body.classList.toggle("figure-beside", Boolean(beside));
    figure.scrollTop = 0;
    // An observer's first report is about the present position.
    const enough = SHOWN * Math.min(1, screen / tall);
    const home = new IntersectionObserver((seen) => {
      if (seen.at(-1).intersectionRatio >= enough) release();
    }, { threshold: enough, rootMargin: `${-Math.ceil(headEnd())}px 0px 0px` });
    home.observe(place.firstChild);
    const noted = new MutationObserver(() => beside && !margin() && giveWay());
    noted.observe(document.body, { attributeFilter: ["class"] });
    const others = new IntersectionObserver(() => leave && anotherSeen(figure) && release(), {
      threshold: [0.2, 0.4, SHOWN],
    });
    for (const other of document.querySelectorAll(FIGURES)) others.observe(other);
    pinned = { figure, place, bar, back, leave, watches: [home, noted, others] };
    follow(link);
    if (!leave) window.FigureView.spare();
  }

  /* A note or a wide table has come into the margin. A figure that was asked for stays in sight. */
  function giveWay() {
    const { figure, link, leave } = pinned;
    release();
    if (!leave) pin(figure, link, third(figure, link), null);
  }

  /* Whether `figure` is beside `link`, which is read but was not pressed. It is pinned for that if
     there is a margin; `leave` is called when it returns to its place. */
  function accompany(figure, link, leave) {
    if (pinned?.figure === figure) {
      if (figure.contains(document.activeElement)) return false;
      pinned.leave ??= leave;
      follow(link);
      return true;
    }
    const place = !closed && margin();
    const busy = figure.contains(link) || figure.contains(document.activeElement);
    if (!place || busy || figure.closest(".wide, .tag_wide") || !figure.checkVisibility()) return false;
    if (share(figure) >= SHOWN || anotherSeen(figure)) return false;
    release();
    moveUnseen(figure);
    pin(figure, link, place, leave);
    return true;
  }

  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && pinned) pinned.back.click();
  });
  // The figure would cover the table of contents.
  addEventListener("focusin", ({ target }) => {
    if (target.closest?.(".bd-sidebar-secondary")) release();
  });
  for (const does of ["wheel", "touchmove", "pointerdown", "keydown", "focusout"]) {
    addEventListener(does, stopLooking, { passive: true });
  }
  addEventListener("resize", () => release());
  addEventListener("beforeprint", () => release());

  return { show, accompany };
})();
