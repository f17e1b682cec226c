"use strict";

/* The reader's bet on a kernel that no GPU has timed, beside the book's and a published time.
   Element #bet-data: {shape, low, high, fla, measured}, shares of the memory limit in percent.
   measured is null until a GPU has decided. The bet stays in this browser. */

{
  const { element } = Stage;
  const KEY = "attention-without-the-exponential:bet", FIRST = 50;
  const SHARES = Array.from({ length: 101 }, (_, i) => i);

  Stage.mountStored("bet", (stage, { shape, low, high, fla, measured }) => {
    const stored = Elements.recalled(KEY);
    let placed = SHARES.includes(stored), share = placed ? stored : FIRST;
    const rows = element("ul", { class: "bet-rows" }),
      line = element("p", { class: "stage-line", role: "status" });

    function row(name, color, from, to, words, unknown = "?") {
      const mark = element("i", { style: `--line: ${color}; left: ${from}%; right: ${100 - to}%` });
      const track = element("span", { class: "bet-track", "aria-hidden": "true" }, words ? mark : null);
      return element("li", {}, element("span", {}, name), track, element("b", {}, words || unknown));
    }

    const off = (from, to) => Math.max(0, from - measured, measured - to);
    function say() {
      if (!placed) return `Your bet is ${share}% of the limit. Place it to see the book’s.`;
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
        row(
          "Measured",
          "currentColor",
          measured,
          measured,
          placed && measured !== null && `${measured}%`,
          measured === null ? "not yet" : "?",
        ),
      );
      place.hidden = placed;
      again.hidden = !placed;
      line.textContent = say();
    }

    function set(isPlaced) {
      placed = isPlaced;
      if (placed) Elements.keep(KEY, share);
      render();
    }
    const place = Stage.swap("Place the bet", () => set(true), () => again),
      again = Stage.swap("Bet again", () => set(false), () => place);
    const control = Stage.slider("bet-share", "Your bet, % of the limit", SHARES, share, (value) => {
      if (value === share) return; // an address sets what is shown already
      [share, placed] = [value, false];
      render();
    });
    stage.append(
      element("p", {}, `One forward call, B × T × H × d = ${shape}`),
      control,
      rows,
      Stage.buttons("Your bet", place, again),
      line,
    );
    render();
    return { share: [Stage.slide(control, SHARES), String(FIRST)] };
  });
}
