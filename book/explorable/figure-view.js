/* Words that set a figure: a link to #headline:x=update&context=256;other:scale=nano. The same hash
   works in a URL that is passed on. Figures and stages name their own settings. */
window.FigureView = (function () {
  "use strict";
  const LINE = 0.4; // share of the screen's height, below a pinned figure, at which one reads
  const READ_MS = 150; // words that stay there for less are scrolled past
  const announced = Elements.element("p", { class: "visually-hidden", role: "status" });
  let pressed = null; // the link whose words were just pressed
  let followed = null; // the hash that the page is set to, or will be
  let read = null; // words that were read and have set a figure, and its settings before
  let next = null, timer = 0; // the link that is read now, if it stays
  let spared = null; // the link that was read when another was pressed
  const setters = []; // (id, settings) => the element, once set; null for another's id
  // (whole) => {id: settings as in a link}; of unchanged figures "", unless `whole`
  const getters = [];

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  /* [[id, [[name, values], ...]], ...]; an id alone stands for the figure's default settings. */
  function parts(hash) {
    return hash.slice(1).split(";").flatMap((part) => {
      const [, id, text] = /^([a-z][a-z0-9-]*):(.*)$/.exec(part) || [];
      const pairs = (text || "").split("&").filter(Boolean).map((pair) => pair.split("="));
      return id ? [[id, pairs.map(([name, values]) => [name, (values || "").split(",").map(decoded)])]] : [];
    });
  }

  const allSettings = (whole) => Object.assign({}, ...getters.map((getter) => getter(whole)));

  function apply(setter, block) {
    const stood = pressed?.getBoundingClientRect().top;
    const [first] = parts(location.hash).map(([id, settings]) => setter(id, settings)).filter(Boolean);
    if (!first || !(block || pressed)) return;
    // If a folded figure above the words has opened, the words stay where they are on the screen.
    if (pressed) scrollBy({ top: pressed.getBoundingClientRect().top - stood, behavior: "instant" });
    if (pressed) window.FigurePin.show(first, pressed);
    else first.scrollIntoView({ block });
    first.classList.remove("figure-told");
    void first.offsetWidth; // restarts the animation
    first.classList.add("figure-told");
  }

  /* Going back resets the figures too; the browser restores the scroll position. */
  function follow() {
    followed = location.hash;
    setters.forEach((setter) => apply(setter));
    if (pressed) spare();
    if (pressed) announced.textContent = `The figure shows: ${pressed.firstChild.textContent}`;
    pressed = null;
  }

  /* Calls `setter` with the settings in the URL, now and at every change. */
  function listen(setter, getter) {
    followed ??= location.hash;
    setters.push(setter);
    getters.push(getter);
    apply(setter, "start");
  }

  /* Writes all settings on the page to the URL. Settings of unknown ids stay. */
  function write() {
    // After a press of Back the page is not yet reset; writing now would undo it.
    if (location.hash !== followed) return;
    const now = allSettings();
    // Settings that only came from reading are not written.
    if (read?.changed != null) now[read.id] = read.changed;
    const others = location.hash.slice(1).split(";").filter((part) =>
      part.includes(":") && !(part.split(":")[0] in now)
    );
    const written = [
      ...Object.entries(now).flatMap(([id, text]) => (text ? [`${id}:${text}`] : [])),
      ...others,
    ];
    const plain = location.hash.includes(":") ? "" : location.hash;
    const hash = written.length ? `#${written.join(";")}` : plain;
    if (hash === location.hash) return;
    history.replaceState(null, "", hash || location.pathname + location.search);
    followed = location.hash;
  }

  /* Sets a figure without announcing it, since nobody asked for it. */
  function setQuietly(id, text) {
    const [[, settings]] = parts(`#${id}:${text}`), figure = document.getElementById(id);
    figure.inert = true;
    setters.some((setter) => setter(id, settings));
    requestAnimationFrame(() => (figure.inert = false));
  }

  function giveBack(kept) {
    const { id, link, was } = read;
    read = null;
    link.classList.remove("figure-read");
    if (!kept && was !== null) setQuietly(id, was);
  }

  /* A link's words have come to where one reads: sets their figure, if there is room for it. */
  function accompany(link) {
    const [, id, text] = /^#([a-z][a-z0-9-]*):([^;]*)/.exec(link.hash), figure = document.getElementById(id);
    if (!figure || read?.link === link || !window.FigurePin.accompany(figure, link, giveBack)) return;
    const before = read ?? { was: allSettings(true)[id], changed: allSettings()[id] };
    read?.link.classList.remove("figure-read");
    read = { ...before, id, link };
    link.classList.add("figure-read");
    setQuietly(id, text);
  }

  const links = () => document.querySelectorAll("a.figure-view");

  /* The last link above the line at which one reads; several in one line follow each other. */
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

  /* The figure of a pressed link stays until the reader has gone on. */
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

  /* Marks the figure of a link that the pointer or the focus is on. */
  function mark(event, on) {
    const link = viewOf(event);
    if (
      !link || event.pointerType === "touch" || (event.type === "focusin" && !link.matches(":focus-visible"))
    ) return;
    for (const [id] of parts(link.hash)) document.getElementById(id)?.classList.toggle("figure-meant", on);
  }

  addEventListener("hashchange", follow);
  if (links().length) addEventListener("scroll", readOn, { passive: true });
  // The reader's own changes stay.
  for (const does of ["pointerdown", "keydown"]) {
    addEventListener(does, ({ target }) => {
      if (!read || !document.getElementById(read.id).contains(target)) return;
      if (!target.closest(".figure-pin-bar")) read.was = read.changed = null;
    });
  }
  addEventListener("animationend", (event) => {
    if (event.animationName.startsWith("figure-told")) event.target.classList.remove("figure-told");
  });
  document.body.append(announced);
  for (const type of ["pointerover", "focusin", "pointerout", "focusout"]) {
    document.addEventListener(type, (event) => mark(event, ["pointerover", "focusin"].includes(type)));
  }
  document.addEventListener("click", (event) => {
    const link = viewOf(event);
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    pressed = link;
    // The browser would look for an element with this name and lose the reader's place. And a
    // second press does not change the hash, though the reader may have changed the figure since.
    event.preventDefault();
    if (link.hash !== location.hash) history.pushState(null, "", link.hash);
    follow();
  });

  return { listen, write, spare };
})();
