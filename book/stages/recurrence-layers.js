"use strict";

/* The layers of one recurrence by the settings of its three valves. Their states are sums of parts:
   what remains of each letter. */

window.Recurrence ??= (() => {
  const K = 6; // the width of a key, and of a value
  const DECAYS = {
    none: "nothing fades",
    fixed: "one rate, fixed",
    channel: "a rate a channel, fixed",
    input: "a rate from the input",
    channels: "a rate a channel, from the input",
    step: "by a step from the input",
  };
  const WRITES = {
    alike: "one key for all",
    key: "its own key",
    strength: "its own key and strength",
    step: "its own key, by the same step",
    channel: "exp(key), a channel",
    delta: "what is new (delta rule)",
  };
  const READS = {
    fixed: "one fixed way",
    query: "with a query",
    mean: "with a query, divided by the sum",
    gate: "through a gate, divided by the sum",
  };
  const PRESETS = {
    "Linear attention": ["none", "key", "mean"],
    "AFT-simple": ["none", "channel", "gate"],
    RWKV: ["channel", "channel", "gate"],
    RetNet: ["fixed", "key", "query"],
    "Mamba-2's decay": ["input", "key", "query"],
    GLA: ["channels", "key", "query"],
    DeltaNet: ["none", "delta", "query"],
    "Gated delta rule": ["input", "delta", "query"],
    S4D: ["channel", "alike", "fixed"],
    "S6 (Mamba)": ["step", "step", "query"],
  };
  const NOTES = {
    RWKV: "RWKV also weighs the newest letter by a separate number, left out here.",
    delta: "The delta rule is drawn with β = 1: the new value replaces the old one completely.",
  };
  /* Decays of the channels between words and within one. */
  const BETWEEN = [0.1, 0.2, 0.4, 0.6, 0.8, 0.9], WITHIN = [0.9, 0.95, 0.98, 0.99, 0.99, 0.99];
  const RATES = {
    none: () => Array(K).fill(1),
    fixed: () => Array(K).fill(0.9),
    channel: () => [0.5, 0.7, 0.82, 0.9, 0.95, 0.98],
    input: (letter) => Array(K).fill(ends(letter) ? 0.4 : 0.98),
    channels: (letter) => (ends(letter) ? BETWEEN : WITHIN),
    step: (letter) => Array(K).fill(Math.exp(-delta(letter))),
  };
  const ends = (letter) => /[\s.,;:!?]/.test(letter), vowel = (letter) => /[aeiou]/i.test(letter);
  const strength = (letter) => (vowel(letter) || ends(letter) ? 0.25 : 1);
  /* One step size decides both: a large one forgets and writes, a small one skips the letter. */
  const delta = (letter) => (ends(letter) ? 1 : vowel(letter) ? 0.03 : 0.1);

  const unit = (x) => x.map((a) => a / Math.hypot(...x));
  const vectors = (letter) => {
    const next = Stage.random(7 + 131 * letter.codePointAt(0));
    const draw = () => unit(Array.from({ length: K }, () => 2 * next() - 1));
    return { k: draw(), v: draw() };
  };
  const COMMON = unit(Array(K).fill(1));
  const size = (part) => Math.hypot(...part.flat());
  /* Whether the decay is the same for every text. */
  const convolves = ({ decay, write }) => !["input", "channels", "step"].includes(decay) && write !== "delta";
  const weight = (
    write,
    letter,
  ) => (write === "strength" ? strength(letter) : write === "step" ? delta(letter) : 1);
  const keyOf = (write, letter) => (write === "alike" ? COMMON : vectors(letter).k);
  /* A letter's addition to the state: a matrix of a row a channel, or a number for each channel. */
  function written(write, letter) {
    const k = keyOf(write, letter), { v } = vectors(letter);
    return write === "channel"
      ? k.map((a, c) => [Math.exp(a) * v[c]])
      : k.map((a) => v.map((b) => weight(write, letter) * a * b));
  }

  /* The parts of the state after each letter, one for each letter read. */
  function recur(text, { decay, write }) {
    let parts = [];
    return [
      parts,
      ...text.map((letter) => {
        const k = keyOf(write, letter), { v } = vectors(letter), rates = RATES[decay](letter);
        parts = parts.map((part) => part.map((row, c) => row.map((x) => rates[c] * x)));
        if (write === "delta") {
          // The state's answer to the key is subtracted from every part.
          parts = parts.map((part) => {
            const answer = v.map((_, j) => k.reduce((sum, a, c) => sum + a * part[c][j], 0));
            return part.map((row, c) => row.map((x, j) => x - k[c] * answer[j]));
          });
        }
        return (parts = [...parts, written(write, letter)]);
      }),
    ];
  }

  /* The same without a state: a fixed decay, to the power of the distance. */
  const convolve = (
    text,
    { decay, write },
  ) => [
    [],
    ...text.map((_, t) =>
      text.slice(0, t + 1).map((letter, j) => {
        const rates = RATES[decay](letter);
        return written(write, letter).map((row, c) => row.map((x) => x * rates[c] ** (t - j)));
      })
    ),
  ];

  return { K, DECAYS, NOTES, PRESETS, RATES, READS, WRITES, convolve, convolves, recur, size, weight };
})();
