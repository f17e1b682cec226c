"use strict";

/* The reader's bet on a kernel that no GPU has timed, beside the book's and a published time.
   Element #bet-data: {shape, low, high, fla, measured}, shares of the memory limit in percent.
   measured is null until a GPU has decided. The bet stays in this browser. */

{
  const { element } = Stage;
  const KEY = "attention-without-the-exponential:bet", FIRST = 50;
  const SHARES = Array.from({ length: 101 }, (_, i) => i);

  /* The share in localStorage, which another version may have written; null if there is none. */
  function kept() {
    try {
      const text = localStorage.getItem(KEY), share = Number(text);
      return text && SHARES.includes(share) ? share : null;
    } catch {
      return null;
    }
  }

  function keep(share) {
    try {
      localStorage.setItem(KEY, share);
    } catch {
      // Without localStorage the bet lasts until the page is left.
    }
  }

  Stage.mount("bet", (stage) => {
    const source = document.getElementById("bet-data");
    if (!source) {
      stage.append(element("p", {}, "Not predicted yet."));
      return {};
    }
    const { shape, low, high, fla, measured } = JSON.parse(source.textContent);
    let share = kept() ?? FIRST, placed = kept() !== null;
    const rows = element("ul", { class: "bet-rows" }),
      line = element("p", { class: "stage-line", role: "status" });

    function row(name, color, from, to, words, unknown = "?") {
      const mark = element("i", { style: `--line: ${color}; left: ${from}%; right: ${100 - to}%` });
      const track = element("span", { class: "bet-track", "aria-hidden": "true" }, words ? mark : null);
      return element("li", {}, element("span", {}, name), track, element("b", {}, words || unknown));
    }

    const off = (from, to) => Math.max(0, from - measured, measured - to);
    function say() {
      if (!placed) return `You say ${share}% of the limit. Place the bet to see the book’s.`;
      const both = `You bet on ${share}%, the book on ${low}% to ${high}%.`;
      if (measured === null) return `${both} fla’s published call reaches ${fla}%. No GPU has decided yet.`;
      return `${both} An H100 reached ${measured}%: you were ${off(share, share)} points off, the book ${
        off(low, high)
      }.`;
    }

    function render() {
      rows.replaceChildren(
        row("You", "currentColor", share, share, `${share}%`),
        row("This book", "var(--linear)", low, high, placed && `${low}–${high}%`),
        row("fla, published", "var(--figure-quiet)", fla, fla, placed && `${fla}%`),
        row("Measured", "currentColor", measured, measured, measured !== null && `${measured}%`, "not yet"),
      );
      place.hidden = placed;
      again.hidden = !placed;
      line.textContent = say();
    }

    const press = (text, value, other) =>
      element("button", {
        type: "button",
        onclick: () => {
          placed = value;
          if (placed) keep(share);
          render();
          other().focus();
        },
      }, text);
    const place = press("Place the bet", true, () => again),
      again = press("Bet again", false, () => place);
    const control = Stage.slider("bet-share", "Your bet, % of the limit", SHARES, share, (value) => {
      [share, placed] = [value, false];
      render();
    });
    stage.append(
      element("p", {}, `One call forwards, B × T × H × d = ${shape}`),
      control,
      rows,
      element("div", { class: "stage-buttons", role: "group", "aria-label": "Steps" }, place, again),
      line,
    );
    render();
    return { share: [Stage.slide(control, SHARES), String(FIRST)] };
  });
}
