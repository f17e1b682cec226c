/* Words that set a figure: a link to #headline:x=update&context=256;other:scale=nano, and the
   same in the URL that somebody was sent. Figures and stages say what they understand of it. */
window.FigureView = (function () {
  "use strict";
  const LINE = 0.4; // of the height of the screen, below a figure that takes its top: where one reads
  const READ_MS = 150; // that words stay there, or they are scrolled past
  const heard = document.createElement("p");
  let pressed = null; // the link whose words were just pressed
  let followed = null; // the hash that the page is set to, or is about to be
  let read = null; // words that have set a figure as they were read, and its settings before
  let next = null, timer = 0; // the link that is read now, if it stays so
  let spared = null; // the one that was read when a link was pressed
  const takers = []; // (id, said) => the element that has taken it, if it is this taker's
  // (whole) => {id: its settings as a link says them, "" where nothing was changed, unless whole}
  const sayers = [];

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  /* [[id, [[name, values], ...]], ...]; an id alone asks for the figure as it was at first. */
  function parts(hash) {
    return hash.slice(1).split(";").flatMap((part) => {
      const [, id, said] = /^([a-z][a-z0-9-]*):(.*)$/.exec(part) || [];
      const pairs = (said || "").split("&").filter(Boolean).map((pair) => pair.split("="));
      return id ? [[id, pairs.map(([name, values]) => [name, (values || "").split(",").map(decoded)])]] : [];
    });
  }

  const said = (whole) => Object.assign({}, ...sayers.map((sayer) => sayer(whole)));

  function tell(taker, block) {
    const stood = pressed?.getBoundingClientRect().top;
    const [first] = parts(location.hash).map(([id, said]) => taker(id, said)).filter(Boolean);
    if (!first || !(block || pressed)) return;
    // A figure that was folded above the words has opened: they stay where they are.
    if (pressed) scrollBy({ top: pressed.getBoundingClientRect().top - stood, behavior: "instant" });
    if (pressed) window.FigurePin.show(first, pressed);
    else first.scrollIntoView({ block });
    first.classList.remove("figure-told");
    void first.offsetWidth; // or the animation would not begin again
    first.classList.add("figure-told");
  }

  /* Going back sets the figure back too, and leaves it to the browser where the page stands. */
  function follow() {
    followed = location.hash;
    takers.forEach((taker) => tell(taker));
    if (pressed) spare();
    if (pressed) heard.textContent = `The figure shows: ${pressed.firstChild.textContent}`;
    pressed = null;
  }

  /* Tell this taker what the URL asks for, now and whenever that changes. */
  function listen(taker, sayer) {
    followed ??= location.hash;
    takers.push(taker);
    sayers.push(sayer);
    tell(taker, "start");
  }

  /* Have the URL say how everything on the page is set. Settings of others stay. */
  function write() {
    // Back was pressed, and the page is not yet set back: writing now would undo that.
    if (location.hash !== followed) return;
    const now = said();
    // Nobody has asked for what was set because it was read.
    if (read?.said != null) now[read.id] = read.said;
    const others = location.hash.slice(1).split(";").filter((part) =>
      part.includes(":") && !(part.split(":")[0] in now)
    );
    const told = [
      ...Object.entries(now).flatMap(([id, text]) => (text ? [`${id}:${text}`] : [])),
      ...others,
    ];
    const plain = location.hash.includes(":") ? "" : location.hash;
    const hash = told.length ? `#${told.join(";")}` : plain;
    if (hash === location.hash) return;
    history.replaceState(null, "", hash || location.pathname + location.search);
    followed = location.hash;
  }

  /* Set a figure that nobody has asked to be set: nothing of it is announced. */
  function setQuietly(id, text) {
    const [[, settings]] = parts(`#${id}:${text}`), figure = document.getElementById(id);
    figure.inert = true;
    takers.some((taker) => taker(id, settings));
    requestAnimationFrame(() => (figure.inert = false));
  }

  function giveBack(kept) {
    const { id, link, was } = read;
    read = null;
    link.classList.remove("figure-read");
    if (!kept && was !== null) setQuietly(id, was);
  }

  /* Words have come to where they are read: their figure shows what they say, if there is room. */
  function accompany(link) {
    const [, id, text] = /^#([a-z][a-z0-9-]*):([^;]*)/.exec(link.hash), figure = document.getElementById(id);
    if (!figure || read?.link === link || !window.FigurePin.accompany(figure, link, giveBack)) return;
    const before = read ?? { was: said(true)[id], said: said()[id] };
    read?.link.classList.remove("figure-read");
    read = { ...before, id, link };
    link.classList.add("figure-read");
    setQuietly(id, text);
  }

  const links = () => document.querySelectorAll("a.figure-view");

  /* The last link above the line at which one reads; of several in a line each has its turn. */
  function beingRead() {
    const over = document.querySelector("body:not(.figure-beside) .figure-pinned");
    const above = over?.getBoundingClientRect().bottom ?? 0, line = above + LINE * (innerHeight - above);
    const places = [...links()].map((link) => ({ link, rect: link.getClientRects()[0] }))
      .filter(({ rect }) => rect && rect.top <= line && rect.bottom > 0);
    const last = Math.max(...places.map(({ rect }) => rect.top));
    const same = places.filter(({ rect }) => last - rect.top < 4).sort((a, b) => a.rect.left - b.rect.left);
    const passed = same.length && (line - last) / same[0].rect.height;
    return same[Math.min(same.length - 1, Math.floor(passed * same.length))]?.link;
  }

  /* What was pressed stays until the reader has gone on. */
  function spare() {
    clearTimeout(timer);
    next = null;
    spared = beingRead();
  }

  function readOn() {
    const now = beingRead();
    if (now !== spared) spared = null;
    if (!now || now === spared || now === next) return;
    next = now;
    clearTimeout(timer);
    timer = setTimeout(() => {
      next = null;
      accompany(now);
    }, READ_MS);
  }

  const viewOf = (event) => (event.target instanceof Element ? event.target.closest("a.figure-view") : null);

  /* While words are pointed at, so is the figure that they are about. */
  function mean(event, on) {
    const link = viewOf(event);
    if (
      !link || event.pointerType === "touch" || (event.type === "focusin" && !link.matches(":focus-visible"))
    ) return;
    for (const [id] of parts(link.hash)) document.getElementById(id)?.classList.toggle("figure-meant", on);
  }

  addEventListener("hashchange", follow);
  if (links().length) addEventListener("scroll", readOn, { passive: true });
  // What the reader changes stays changed.
  for (const does of ["pointerdown", "keydown"]) {
    addEventListener(does, ({ target }) => {
      if (!read || !document.getElementById(read.id).contains(target)) return;
      if (!target.closest(".figure-pin-bar")) read.was = read.said = null;
    });
  }
  addEventListener("animationend", (event) => {
    if (event.animationName.startsWith("figure-told")) event.target.classList.remove("figure-told");
  });
  heard.className = "visually-hidden";
  heard.setAttribute("role", "status");
  document.body.append(heard);
  for (const type of ["pointerover", "focusin"]) {
    document.addEventListener(type, (event) => mean(event, true));
  }
  for (const type of ["pointerout", "focusout"]) {
    document.addEventListener(type, (event) => mean(event, false));
  }
  document.addEventListener("click", (event) => {
    const link = viewOf(event);
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    pressed = link;
    // The browser would look for an element of this name, and lose the reader's place. And a
    // second press changes no hash, though the reader may have changed the figure since.
    event.preventDefault();
    if (link.hash !== location.hash) history.pushState(null, "", link.hash);
    follow();
  });

  return { listen, write, spare };
})();
