/* A figure, chart or stage, and the words that set it are in sight together. Where the margin beside
   the text is wide enough, the figure stands there; else it takes the top third of the screen. It
   comes where words of the text are pressed, and on a wide screen where they are read. It goes home
   when the reader leaves the words, goes back to them, or comes to its own place. */
window.FigurePin = (function () {
  "use strict";
  const SHOWN = 0.6; // of a figure's picture, from which it needs no pin
  const GAP = 8; // px around a pinned figure
  const EDGE = 12; // px between its border and what is in it
  const NARROWEST = 270, WIDEST = 480; // px: phones are as narrow, and more is not needed
  const LOWEST = 300; // px of a third of a screen
  const SENTENCE = 64; // px that words stand above the link which ends them
  let pinned = null, looking = null;
  let closed = false; // the reader wants no figure that has not been asked for

  const pictureOf = (figure) => figure.querySelector(".explorable-frame, .stage") ?? figure;

  const headEnd = () => document.querySelector(".bd-header-article")?.getBoundingClientRect().bottom ?? 0;

  /* The share of `figure`'s picture on the screen, at most what the screen can hold. */
  function share(figure) {
    const { top, bottom, height } = pictureOf(figure).getBoundingClientRect();
    const head = headEnd();
    const seen = Math.min(bottom, innerHeight) - Math.max(top, head);
    return seen / Math.min(height, innerHeight - head);
  }

  /* The room beside the text; null where it is narrow, or a note or a wide table stands there. */
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

  /* The top third of the screen, from which the words move away; the lowest where they cannot. */
  function third(figure, link) {
    const { left, width } = figure.getBoundingClientRect();
    const top = headEnd() + GAP, room = Math.max(LOWEST, (innerHeight - top) / 3);
    const covered = top + room + SENTENCE - link.getBoundingClientRect().top;
    const low = covered > scrollY;
    if (!low && covered > 0) scrollBy({ top: -covered, behavior: "instant" });
    return { low, left: left - EDGE, width: width + 2 * EDGE, top, room };
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
    const { height, top } = figure.getBoundingClientRect();
    const { marginTop, marginBottom } = getComputedStyle(figure);
    const picture = pictureOf(figure).getBoundingClientRect();
    Object.assign(place.style, { height: `${height}px`, marginTop, marginBottom, display: "flow-root" });
    Object.assign(hole.style, { height: `${picture.height}px`, marginTop: `${picture.top - top}px` });
    place.append(hole);
    figure.before(place);
    return place;
  }

  /* What moves while it is not seen shifts nothing that is read. */
  function moveUnseen(figure) {
    if (figure.contains(document.activeElement)) return;
    figure.style.visibility = "hidden";
    requestAnimationFrame(() => requestAnimationFrame(() => (figure.style.visibility = "")));
  }

  /* kept: the figure stays as the words have set it. */
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

  /* The way back to the words; `leave` leaves the figure first, and says which. */
  function wayBack(block, leave) {
    const back = button("Back to the text", () => {
      const link = leave();
      link.scrollIntoView({ block });
      link.focus({ preventScroll: true });
    });
    back.className = "figure-back";
    return back;
  }

  /* To its own place, as it is set now, and from there back to the words. */
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

  /* What was far from the screen has a guessed height until it comes near, and may move a figure
     off the screen that was on it when the link was pressed. So it is looked after until the
     reader does something else. */
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

  /* The words that are read now are others, of the same figure. */
  function follow(link) {
    pinned.words?.disconnect();
    pinned.link = link;
    pinned.words = new IntersectionObserver(([{ isIntersecting }]) => isIntersecting || release());
    pinned.words.observe(link.closest("p, li, td, dd") ?? link);
  }

  function pin(figure, link, { beside, low, left, width, top, room }, leave) {
    const tall = pictureOf(figure).getBoundingClientRect().height, screen = innerHeight - headEnd();
    const place = holdPlace(figure);
    const bar = document.createElement("div");
    bar.className = "figure-pin-bar";
    const close = () => {
      const { link } = pinned;
      closed = true;
      release();
      return link;
    };
    const back = leave ? button("Close", close) : wayBack("nearest", close);
    bar.append(button("Go to the figure", goHome), back);
    figure.prepend(bar);
    for (const [name, value] of Object.entries({ left, width, top, room })) {
      figure.style.setProperty(`--pin-${name}`, `${value}px`);
    }
    figure.classList.add("figure-pinned");
    figure.classList.toggle("figure-pinned-low", Boolean(low));
    document.body.classList.toggle("figure-beside", Boolean(beside));
    figure.scrollTop = 0;
    // The first reports are of where they stand now.
    const enough = SHOWN * Math.min(1, screen / tall);
    const home = new IntersectionObserver(([{ intersectionRatio }]) => {
      if (intersectionRatio >= enough) release();
    }, { threshold: enough, rootMargin: `${-Math.ceil(headEnd())}px 0px 0px` });
    home.observe(place.firstChild);
    const noted = new MutationObserver(() => beside && !margin() && giveWay());
    noted.observe(document.body, { attributeFilter: ["class"] });
    pinned = { figure, place, bar, back, leave, watches: [home, noted] };
    follow(link);
    if (!leave) window.FigureView.spare();
  }

  /* A note or a wide table has come into the margin. What was asked for stays in sight. */
  function giveWay() {
    const { figure, link, leave } = pinned;
    release();
    if (!leave) pin(figure, link, third(figure, link), null);
  }

  /* Whether `figure` stands beside `link`, which nobody has pressed, now that it is read. It is
     pinned for that if there is a margin; `leave` is called once it goes home. */
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
    if (share(figure) >= SHOWN) return false;
    release();
    moveUnseen(figure);
    pin(figure, link, place, leave);
    return true;
  }

  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && pinned) pinned.back.click();
  });
  // The contents of the page, which it covers.
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
