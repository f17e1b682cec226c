/* A figure, chart or stage, that words of the text have set comes to these words, where it is not
   on the screen already: it is pinned to the half of the screen that they are not in, and nothing
   scrolls. It goes home when the reader leaves the words, goes back to them, or comes to its own
   place. */
window.FigurePin = (function () {
  "use strict";
  const SHOWN = 0.6; // of a figure's picture, from which it needs no pin
  const GAP = 8; // px around a pinned figure
  let pinned = null, looking = null;

  const pictureOf = (figure) => figure.querySelector(".explorable-frame, .stage") ?? figure;

  const headEnd = () => document.querySelector(".bd-header-article")?.getBoundingClientRect().bottom ?? 0;

  /* The share of `figure`'s picture on the screen, at most what the screen can hold. */
  function share(figure) {
    const { top, bottom, height } = pictureOf(figure).getBoundingClientRect();
    const head = headEnd();
    const seen = Math.min(bottom, innerHeight) - Math.max(top, head);
    return seen / Math.min(height, innerHeight - head);
  }

  function button(text, act) {
    const element = document.createElement("button");
    element.type = "button";
    element.textContent = text;
    element.addEventListener("click", act);
    return element;
  }

  /* Hold its place, so that the page does not move under the words. From here on until the figure
     is pinned nothing may be measured: the browser would follow the words to where both stand. */
  function holdPlace(figure) {
    const place = document.createElement("div"), hole = document.createElement("div");
    const { height, left, width, top } = figure.getBoundingClientRect();
    const { marginTop, marginBottom } = getComputedStyle(figure);
    const picture = pictureOf(figure).getBoundingClientRect();
    Object.assign(place.style, { height: `${height}px`, marginTop, marginBottom, display: "flow-root" });
    Object.assign(hole.style, { height: `${picture.height}px`, marginTop: `${picture.top - top}px` });
    place.append(hole);
    figure.before(place);
    figure.style.setProperty("--pin-left", `${left}px`);
    figure.style.setProperty("--pin-width", `${width}px`);
    return place;
  }

  function release() {
    if (!pinned) return;
    const { figure, place, bar, watches } = pinned;
    pinned = null;
    for (const watch of watches) watch.disconnect();
    place.remove();
    bar.remove();
    figure.classList.remove("figure-pinned", "figure-pinned-low");
    document.body.classList.remove("figure-pinning");
  }

  /* The way back to the words; first `leave` the figure. */
  function wayBack(link, block, leave) {
    const back = button("Back to the text", () => {
      leave();
      link.scrollIntoView({ block });
      link.focus({ preventScroll: true });
    });
    back.className = "figure-back";
    return back;
  }

  /* To its own place, and from there back to the words. */
  function goHome(figure, link) {
    release();
    figure.scrollIntoView({ block: "start" });
    figure.querySelector(".figure-back")?.remove();
    const back = wayBack(link, "center", () => back.remove());
    figure.prepend(back);
    back.focus({ preventScroll: true });
  }

  /* What was far from the screen has a guessed height until it comes near, and may move a figure
     off the screen that was on it when the link was pressed. So it is looked after until the
     reader does something else. */
  function show(figure, link) {
    stopLooking();
    if (pinned?.figure !== figure) release();
    if (pinned) return;
    const pinUnlessSeen = () => {
      if (share(figure) >= SHOWN) return;
      stopLooking();
      pin(figure, link);
    };
    looking = new ResizeObserver(pinUnlessSeen);
    looking.observe(document.body);
    pinUnlessSeen();
  }

  function stopLooking() {
    looking?.disconnect();
    looking = null;
  }

  function pin(figure, link) {
    const { top, bottom } = link.getBoundingClientRect();
    const head = headEnd(), above = top - head - 2 * GAP, below = innerHeight - bottom - 2 * GAP;
    // Below where there is room: the sentence stands mostly before its link.
    const low = below > 0.75 * above;
    const tall = pictureOf(figure).getBoundingClientRect().height, room = innerHeight - head;
    const place = holdPlace(figure);
    const back = wayBack(link, "nearest", release);
    const bar = document.createElement("div");
    bar.className = "figure-pin-bar";
    bar.append(button("Go to the figure", () => goHome(figure, link)), back);
    figure.prepend(bar);
    figure.style.setProperty("--pin-room", `${low ? below : above}px`);
    figure.style.setProperty("--pin-top", `${head + GAP}px`);
    figure.classList.add("figure-pinned");
    figure.classList.toggle("figure-pinned-low", low);
    document.body.classList.add("figure-pinning");
    figure.scrollTop = 0;
    const words = link.closest("p, li, td, dd") ?? link;
    // The first reports are of where they stand now.
    const hole = place.firstChild;
    const enough = SHOWN * Math.min(1, room / tall);
    const left = new IntersectionObserver(([{ isIntersecting }]) => isIntersecting || release());
    const home = new IntersectionObserver(([{ intersectionRatio }]) => {
      if (intersectionRatio >= enough) release();
    }, { threshold: enough, rootMargin: `${-Math.ceil(head)}px 0px 0px` });
    left.observe(words);
    home.observe(hole);
    pinned = { figure, place, bar, watches: [left, home], back };
  }

  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && pinned) pinned.back.click();
  });
  for (const does of ["wheel", "touchmove", "pointerdown", "keydown", "focusout"]) {
    addEventListener(does, stopLooking, { passive: true });
  }
  addEventListener("resize", release);
  addEventListener("beforeprint", release);

  return { show };
})();
