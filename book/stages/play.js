"use strict";

/* Made-up tasks as rows of symbols. The reader answers, then the layers' answers appear below.
   Texts and answers are data from the page's figures module: element #play-data. */

{
  const { element } = Stage;
  const letter = (i) => String.fromCharCode(65 + i);
  const NAMES = {
    recall: "Look numbers up",
    "selective copying": "Copy without dots",
    copying: "Copy after a wait",
    induction: "After the star",
  };
  const TASKS = {
    recall: "Recall: each letter comes with a number. Where a dot follows it, say that number.",
    "selective copying": "Selective copying: letters stand anywhere among dots. Say them again, in order.",
    copying: "Copying: letters open the text. After the wait, say them again, in order.",
    induction: "Induction: the star comes twice. Say what followed it the first time.",
  };
  const LAYERS = { softmax: "Softmax", linear: "Linear" };

  /* How the tokens of a text are drawn: {token: {name, hue}}. Its answers are names of hues. */
  function namesOf(task, { tokens, asked }) {
    const names = new Map();
    const name = (token, said, hue) => names.has(token) || names.set(token, { said, hue });
    if (task === "induction") name(0, "★");
    name(0, "·");
    if (task === "recall") {
      const pairs = asked.length;
      for (let i = 0; i < pairs; i++) name(tokens[2 * i], letter(i));
      const values = tokens.slice(0, 2 * pairs).filter((_, i) => i % 2);
      [...new Set(values)].sort((a, b) => a - b).forEach((token, i) => name(token, String(i + 1), i));
    } else {
      if (task !== "induction") name(1, "?");
      [...new Set(tokens)].sort((a, b) => a - b).forEach((token) => {
        const first = task === "induction" ? 1 : 2;
        name(token, letter(token - first), token - first);
      });
    }
    return names;
  }

  /* A square with a symbol. */
  function square(tag, symbol, attributes = {}) {
    const { said, hue } = symbol ?? { said: "other" };
    return element(
      tag,
      {
        ...attributes,
        class: `play-square ${attributes.class ?? ""}`.trim(),
        style: hue === undefined ? null : `--hue: ${47 * hue}deg`,
      },
      said,
    );
  }

  class Play {
    text = 0;
    answers = []; // of the reader, token by token

    constructor(stage, { tasks, sources }) {
      Object.assign(this, { tasks, task: "recall" });
      this.rule = element("p", { class: "play-rule" });
      this.strip = element("div", { class: "play-strip", role: "img" });
      this.buttons = element("div", { class: "play-choices", role: "group", "aria-label": "Your answer" });
      this.table = element("table", { class: "play-table" });
      this.line = element("p", { class: "stage-line", role: "status" });
      this.kinds = Stage.radios("Task", NAMES, this.task, (task) => this.open(task, 0));
      stage.append(
        this.kinds,
        this.rule,
        this.strip,
        this.line,
        this.buttons,
        element(
          "div",
          { class: "play-scroll", tabindex: 0, role: "region", "aria-label": "Answers" },
          this.table,
        ),
        Stage.buttons(
          "Texts",
          Stage.button("Show the answers", () => this.reveal()),
          Stage.button("Another text", () => this.open(this.task, (this.text + 1) % this.now.length)),
        ),
        Stage.provenance(sources),
      );
      this.open(this.task, 0);
    }

    get now() {
      return this.tasks[this.task];
    }

    get done() {
      return this.answers.length === this.now[this.text].asked.length;
    }

    open(task, text) {
      Object.assign(this, { task, text, answers: [] });
      this.names = namesOf(task, this.now[text]);
      this.rule.textContent = TASKS[task];
      const choices = [...this.names].filter(([, { hue }]) => hue !== undefined);
      this.buttons.replaceChildren(
        ...choices.map(([token, symbol]) =>
          square("button", symbol, { type: "button", onclick: () => this.answer(token) })
        ),
      );
      this.draw();
    }

    answer(token) {
      if (!this.done) this.answers.push(token);
      this.draw();
    }

    /* Shows the layers' answers; questions that the reader skipped stay empty. */
    reveal() {
      while (!this.done) this.answers.push(null);
      this.draw();
    }

    draw() {
      const { tokens, asked, wanted, said } = this.now[this.text], { names, answers } = this;
      const here = asked[answers.length], done = answers.length;
      this.strip.setAttribute(
        "aria-label",
        `The text: ${tokens.map((token) => names.get(token).said).join(" ")}`,
      );
      this.strip.replaceChildren(...tokens.map((token, place) =>
        square("span", names.get(token), {
          class: place === here ? "play-here" : asked.includes(place) ? "play-asked" : "",
        })
      ));
      const row = (label, list, ...scores) =>
        element(
          "tr",
          {},
          element("th", { scope: "row" }, label, ...scores),
          list.map((token, i) => {
            const open = i >= done, mark = open && i === done && label === "You" ? "?" : "";
            if (open) return element("td", {}, square("span", { said: mark }, { class: "play-open" }));
            if (token === null) return element("td", {}, "–");
            const right = token === wanted[i];
            return element(
              "td",
              { class: right ? "" : "play-wrong" },
              square("span", names.get(token)),
              element("span", {}, right ? "✓" : "✗"),
            );
          }),
        );
      this.table.replaceChildren(
        row("You", asked.map((_, i) => answers[i] ?? null)),
        ...Object.entries(LAYERS).map(([name, label]) => row(label, said[name], this.score(name))),
      );
      this.line.textContent = this.say(here);
    }

    /* Share of all texts of the task that a model answers right. */
    score(name) {
      const right = this.now.flatMap(({ said, wanted }) => wanted.map((one, i) => said[name][i] === one));
      return element("small", {}, `${right.filter(Boolean).length} of ${right.length} right`);
    }

    say(here) {
      const { tokens, asked, wanted, said } = this.now[this.text], { names, answers } = this;
      const done = answers.length,
        right = (list) => list.slice(0, done).filter((one, i) => one === wanted[i]).length;
      const scores = `Right of ${done}: you ${right(answers)}, softmax ${right(said.softmax)}, linear ${
        right(said.linear)
      }.`;
      if (this.done) return scores;
      const what = this.task === "recall"
        ? `which number followed ${names.get(tokens[here]).said}?`
        : this.task === "induction"
        ? "which letter followed the star?"
        : `which letter was number ${done + 1}?`;
      const question = `Question ${done + 1} of ${asked.length}: ${what}`;
      return done ? `${question} ${scores}` : question;
    }
  }

  Stage.mountStored("play", (stage, data) => {
    const play = new Play(stage, data);
    const shown = Stage.setter(
      (value) => value === "yes" ? play.reveal() : value === "no",
      () => play.done ? "yes" : "no",
    );
    return {
      task: [Stage.pick(play.kinds), "recall"],
      text: [Stage.whole((n) => play.open(play.task, n - 1), () => play.text + 1, 1, play.now.length), 1],
      shown: [shown, "no"],
    };
  });
}
