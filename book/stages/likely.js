"use strict";

/* Likely next tokens, as the sampler and a trained model's stage show them. */

window.Likely ??= (() => {
  const { element } = Stage;

  const percent = (share) => (share < 0.005 ? "<1%" : `${Math.round(100 * share)}%`);

  /* Likely next tokens with bars, [[name, share]], as entries of a list. */
  const bars = (likely) =>
    likely.map(([name, share]) =>
      element(
        "li",
        {},
        element("span", {}, name),
        element("span", { class: "sampler-bar", style: `--share: ${share.toFixed(4)}` }),
        element("span", {}, percent(share)),
      )
    );

  return { bars, percent };
})();
