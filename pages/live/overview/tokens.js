// The text as rows, one a token, which all other parts follow; the last row is the place of the token to come.

import { element, fill, fmtCount, setText } from "../sampling_lab/format.js";
import { isNew } from "./numbers.js";

export class Tokens {
  // choose(position): the reader follows another token; say(text or null): what the pointer rests on.
  constructor(root, { choose, say }) {
    Object.assign(this, { root, choose, say });
    root.setAttribute("role", "radiogroup");
    root.onclick = (event) => {
      const row = event.target.closest(".row");
      if (row?.position !== undefined) choose(row.position);
    };
    root.onkeydown = (event) => {
      const step = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 }[event.key];
      const { position } = this.chosen;
      const next = { Home: 0, End: this.length - 1 }[event.key] ?? (step === undefined ? undefined : position + step);
      if (next === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      this.wantsFocus = true;
      choose(Math.min(Math.max(next, 0), this.length - 1));
    };
  }

  show({ text, chosen, labels, isLast }) {
    this.chosen = chosen;
    this.length = text.length;
    if (!isNew(this.root, text, chosen.position, chosen.candidate, isLast, labels.tokens)) return;
    this.root.setAttribute("aria-label", labels.tokens);
    const digits = Math.max(...text.rows.map(({ id }) => String(id).length));
    this.root.style.setProperty("--digits", digits); // so that all tokens end at one line
    const rows = text.rows.map((token) => this.token(token, chosen));
    const brief = (n, label, position) => {
      const made = element("button", { type: "button", className: "row brief", textContent: fill(label, { n: fmtCount(n) }) });
      made.position = position;
      made.tabIndex = -1;
      made.setAttribute("role", "radio");
      made.setAttribute("aria-checked", "false");
      return made;
    };
    const first = text.rows[0].position;
    const last = text.rows.at(-1).position;
    if (text.earlier) rows.unshift(brief(text.earlier, labels.earlier, first - 1));
    if (text.later) rows.push(brief(text.later, labels.later, last + 1));
    const slot = element("div", { className: "row slot", textContent: labels.next });
    slot.setAttribute("role", "presentation");
    slot.classList.toggle("away", !isLast);
    this.root.replaceChildren(...rows, slot);
    this.rows = rows;
    this.slot = slot;
    this.first = text.earlier ? 1 : 0;
    if (this.wantsFocus) this.chosenRow()?.focus({ preventScroll: true });
    this.wantsFocus = false;
  }

  token({ position, id, text, hue, kind }, chosen) {
    const name = element("bdi", { className: "token", textContent: text });
    const made = element("button", { type: "button", className: `row ${kind}` }, name, element("span", { className: "id", textContent: id }));
    made.style.setProperty("--hue", hue);
    made.position = position;
    const isChosen = position === chosen.position;
    made.classList.toggle("chosen", isChosen);
    made.classList.toggle("same", id === chosen.candidate);
    made.setAttribute("role", "radio");
    made.setAttribute("aria-checked", String(isChosen));
    made.setAttribute("aria-label", `${position}: ${text}, id ${id}`);
    made.tabIndex = isChosen ? 0 : -1;
    made.onpointerenter = () => this.say(`${position}: ${text} · id ${id}`);
    made.onpointerleave = () => this.say(null);
    return made;
  }

  // The row of the i-th token told one by one.
  rowOf(index) {
    return this.rows[index + this.first];
  }

  chosenRow() {
    return this.root.querySelector(".chosen");
  }

  note(node, { text, model, labels }) {
    setText(node, fill(labels.text_note, { n: fmtCount(text.length), vocab: fmtCount(model.vocab) }));
  }
}
