/* Words that set a figure: a link to #headline:x=update&context=256;other:scale=nano, and the
   same in the URL that somebody was sent. Figures and stages say what they understand of it. */
window.FigureView = (function () {
  "use strict";
  const heard = document.createElement("p");
  let pressed = null; // the link whose words were just pressed
  let followed = null; // the hash that the page is set to, or is about to be
  const takers = []; // (id, said) => the element that has taken it, if it is this taker's
  const sayers = []; // () => {id: its settings as a link says them, "" where nothing was changed}

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
    const said = Object.assign({}, ...sayers.map((sayer) => sayer()));
    const others = location.hash.slice(1).split(";").filter((part) =>
      part.includes(":") && !(part.split(":")[0] in said)
    );
    const told = [
      ...Object.entries(said).flatMap(([id, text]) => (text ? [`${id}:${text}`] : [])),
      ...others,
    ];
    const plain = location.hash.includes(":") ? "" : location.hash;
    const hash = told.length ? `#${told.join(";")}` : plain;
    if (hash === location.hash) return;
    history.replaceState(null, "", hash || location.pathname + location.search);
    followed = location.hash;
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

  return { listen, write };
})();
