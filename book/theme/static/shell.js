/* The page's own behaviour: the contents and the header, previews of references, keyboard access to
   boxes that scroll, and the margin. It also works on a page opened from a file. Readers without
   scripts lose nothing. */
(() => {
  "use strict";

  // A busy computer may never be idle, so after this time the task runs anyway.
  const LATEST_MS = 1000;
  const whenIdle = (task) =>
    window.requestIdleCallback ? requestIdleCallback(task, { timeout: LATEST_MS }) : setTimeout(task, 50);

  // Sphinx's search takes its excerpts from the pages of the results. A page opened from a file
  // cannot read them, and formulas would appear as LaTeX. excerpts.js has the words of all pages.
  if (document.getElementById("search-results")) {
    let coming = null;
    const load = () =>
      new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = new URL("_static/excerpts.js", location.href);
        script.onload = () => resolve(window.BOOK_PAGES);
        script.onerror = reject;
        document.head.append(script);
      });
    const root = new URL(".", location.href).href;
    window.fetch = async (address) => {
      const name = new URL(address, location.href).href.slice(root.length).split(/[?#]/)[0];
      const text = (await (coming ??= load()))[name] ?? "";
      return { text: async () => text };
    };
  }

  /* What the pages need of the theme's script, which is left out since it searches all elements for
     28 classes: the contents fold away beside the text, and a scrolled page has a rule below its
     header. */
  function installFrame() {
    const contents = document.getElementById("pst-primary-sidebar");
    document.querySelector(".primary-toggle").addEventListener("click", (event) => {
      if (!matchMedia("(min-width: 992px)").matches) return; // there they open in a dialog
      event.preventDefault();
      event.stopImmediatePropagation();
      contents.classList.toggle("pst-sidebar-hidden");
    }, true);
    new IntersectionObserver((entries) =>
      // on a busy page several at once, of which the last holds
      document.body.classList.toggle("scrolled", entries.at(-1).boundingClientRect.y < 0)
    ).observe(document.querySelector(".sbt-scroll-pixel-helper"));
  }

  /* Marks in the contents beside the text the section that is read. The theme's script waits for a
     heading to come into view: after a jump it marks another section. */
  function installContents() {
    const links = [...document.querySelectorAll("#page-contents a")];
    const sections = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))));
    let marked = null, frame = 0;
    const mark = () => {
      frame = 0;
      const { scrollTop, scrollHeight } = document.documentElement;
      const atEnd = scrollTop + innerHeight > scrollHeight - 2;
      const line = atEnd ? innerHeight : 0.3 * innerHeight;
      const now = links[sections.findLastIndex((section) => section?.getBoundingClientRect().top < line)];
      if (now === marked) return;
      marked?.classList.remove("active");
      marked?.removeAttribute("aria-current");
      now?.classList.add("active");
      now?.setAttribute("aria-current", "true");
      marked = now;
    };
    const soon = () => (frame ||= requestAnimationFrame(mark));
    for (const type of ["scroll", "resize"]) addEventListener(type, soon, { passive: true });
    mark();
  }

  const SHOW_AFTER_MS = 180;
  const HIDE_AFTER_MS = 250;
  const PREVIEWED = ".proof, .citation, div.math, aside.footnote";

  /* The target of `link` as a fresh node, or null. */
  function previewOf(link) {
    const href = link.getAttribute("href");
    const stored = document.querySelector(
      `template.preview-source[data-href="${CSS.escape(href)}"]`,
    );
    if (stored) return stored.content.cloneNode(true).firstElementChild;
    if (!href.startsWith("#") || href.length < 2) return null;
    let target = document.getElementById(decodeURIComponent(href.slice(1)));
    if (!target) return null;
    if (target.tagName === "DT") target = target.nextElementSibling;
    else if (!target.matches(PREVIEWED)) return null;
    const copy = target.cloneNode(true);
    copy.removeAttribute("id");
    copy.querySelectorAll("[id]").forEach((node) => node.removeAttribute("id"));
    copy.querySelectorAll(".headerlink, .backrefs").forEach((node) => node.remove());
    return copy;
  }

  function installPreviews() {
    const box = document.createElement("div");
    box.id = "preview";
    box.className = "bd-article";
    box.setAttribute("role", "tooltip");
    box.hidden = true;
    document.querySelector("main").append(box);
    let shownFor = null;
    let timer = 0;

    const hide = () => {
      clearTimeout(timer);
      shownFor?.removeAttribute("aria-describedby");
      shownFor = null;
      box.hidden = true;
    };

    const place = (link) => {
      const at = link.getClientRects()[0] ?? link.getBoundingClientRect();
      const width = document.documentElement.clientWidth;
      const left = Math.max(16, Math.min(at.left, width - box.offsetWidth - 16));
      const below = at.bottom + 8;
      const fits = below + box.offsetHeight < window.innerHeight || at.top < box.offsetHeight + 16;
      const top = fits ? below : at.top - box.offsetHeight - 8;
      box.style.left = `${left}px`;
      box.style.top = `${top}px`;
    };

    const show = (link) => {
      const content = previewOf(link);
      if (!content) return;
      hide();
      box.replaceChildren(content);
      box.hidden = false;
      shownFor = link;
      link.setAttribute("aria-describedby", "preview");
      place(link);
    };

    const later = (action, wait) => {
      clearTimeout(timer);
      timer = setTimeout(action, wait);
    };

    document.querySelectorAll("main a.internal, main a.footnote-reference").forEach((link) => {
      if (!link.hash) return;
      link.addEventListener("mouseenter", () => later(() => show(link), SHOW_AFTER_MS));
      link.addEventListener("mouseleave", () => later(hide, HIDE_AFTER_MS));
      link.addEventListener("focus", () => link.matches(":focus-visible") && show(link));
      link.addEventListener("blur", hide);
    });
    box.addEventListener("mouseenter", () => clearTimeout(timer));
    box.addEventListener("mouseleave", () => later(hide, HIDE_AFTER_MS));
    document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
    // Focus scrolls its link into view, and the link's preview follows; other previews close.
    const follow = () => (shownFor && shownFor === document.activeElement ? place(shownFor) : hide());
    document.addEventListener("scroll", follow, { passive: true });
  }

  /* A box that scrolls must be reachable without a mouse. */
  function installScrollAccess() {
    const boxes = document.querySelectorAll(
      ".bd-article :is(div.math, pre, .pst-scrollable-table-container, .output)",
    );
    // A formula's number is beside the box that scrolls.
    const innerOf = (box) => box.querySelector(":scope > .katex-display") ?? box;
    const check = (box) => {
      const inner = innerOf(box);
      const scrolls = inner.scrollWidth > inner.clientWidth || inner.scrollHeight > inner.clientHeight + 1;
      if (scrolls) inner.tabIndex = 0;
      else inner.removeAttribute("tabindex");
    };
    // Reading sizes inside a block far from the screen would force its layout; it has an estimated
    // size.
    const isLaidOut = (box) => innerOf(box).checkVisibility?.({ contentVisibilityAuto: true }) ?? true;
    const observer = new ResizeObserver((entries) =>
      entries.map((entry) => entry.target).filter(isLaidOut).forEach(check)
    );
    boxes.forEach((box) => observer.observe(box));
    // Boxes far from the screen are not laid out and so not observed. For keyboard users they are
    // measured when the browser is idle, a few at a time.
    let left = [];
    let withKeys = false;
    const measure = (deadline) => {
      do {
        const box = left.shift();
        if (box) check(box);
      } while (left.length && (deadline?.timeRemaining() ?? 0) > 4);
      if (left.length) whenIdle(measure);
      else document.documentElement.dataset.measured = "";
    };
    const measureAll = () => {
      const measuring = left.length > 0;
      left = [...boxes].filter((box) => withKeys || isLaidOut(box));
      if (!measuring) whenIdle(measure);
    };
    const useKeys = () => {
      withKeys = true;
      measureAll();
    };
    addEventListener("keydown", useKeys, { once: true, passive: true });
    // A font that loads late changes the content's size but not the box's.
    document.fonts.addEventListener("loadingdone", measureAll);
    measureAll();
  }

  /* Hides the table of contents while something else is in the margin. */
  function installMargin() {
    const inMargin = new Set();
    const observer = new IntersectionObserver(
      (entries) => {
        for (const entry of entries) {
          inMargin[entry.isIntersecting ? "add" : "delete"](entry.target);
        }
        document.body.classList.toggle("margin-in-use", inMargin.size > 0);
      },
      { rootMargin: "0px 0px -25% 0px" },
    );
    document
      .querySelectorAll(".bd-article :is(.margin-note, .wide, .tag_wide)")
      .forEach((node) => observer.observe(node));
  }

  /* Opens folded blocks for printing. */
  function installPrinting() {
    let opened = [];
    window.addEventListener("beforeprint", () => {
      opened = [...document.querySelectorAll(".bd-article details.folded:not([open])")];
      opened.forEach((details) => (details.open = true));
    });
    window.addEventListener("afterprint", () => opened.forEach((details) => (details.open = false)));
  }

  document.querySelector(".bd-search-container input")?.focus();
  // One at a time, when idle: none is needed to read the first screen.
  const installs = [
    installFrame,
    installContents,
    installPreviews,
    installScrollAccess,
    installMargin,
    installPrinting,
  ];
  const installNext = () => {
    installs.shift()?.();
    if (installs.length) whenIdle(installNext);
    else document.documentElement.dataset.ready = "";
  };
  whenIdle(installNext);
})();
