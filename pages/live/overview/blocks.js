// The blocks as a stack from left to right: in each, what the followed token attends to; below, what it would say there.

import { element, fill, fmtCount, fmtProbability, setText, svgElement } from "../sampling_lab/format.js";
import { fmtPercent, isNew, quoted } from "./numbers.js";

const LEAST = 0.01; // weights below are not drawn
const LABEL = 15; // pixels a label of the lens takes, standing upright
const CHOSEN = 96; // and that of the chosen block, which lies across its neighbours
const LYING = 36; // and lying

export class Blocks {
  // choose({layer}) or ({head}): the reader follows another one; say(text or null).
  constructor({ picture, heads, lens }, { choose, say }) {
    Object.assign(this, { picture, heads, lens, choose, say });
    heads.setAttribute("role", "radiogroup");
    lens.setAttribute("role", "radiogroup");
    heads.onkeydown = (event) => this.pressed(event, "head", -1, this.n.heads - 1);
    lens.onkeydown = (event) => this.pressed(event, "layer", 0, this.n.layers - 1);
  }

  pressed(event, what, low, high) {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const now = this.state.chosen[what];
    const next = { Home: low, End: high }[event.key] ?? (step === undefined ? undefined : now + step);
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.choose({ [what]: Math.min(Math.max(next, low), high) });
    this[what === "head" ? "heads" : "lens"].querySelector("[aria-checked=true]")?.focus({ preventScroll: true });
  }

  // The followed token's weight on a row in a block, in the chosen head or in the mean of all.
  weight(layer, i, head = this.state.chosen.head) {
    const { way } = this.state;
    const of = (h) => (i < 0 ? way.before.at(layer, h) : way.attention.at(layer, h, i));
    if (head >= 0) return of(head);
    let sum = 0;
    for (let h = 0; h < this.n.heads; h++) sum += of(h);
    return sum / this.n.heads;
  }

  headName(head = this.state.chosen.head) {
    const { labels } = this.state;
    return head < 0 ? fill(labels.mean_of, { n: this.n.heads }) : fill(labels.head, { head });
  }

  // places: the middles of the rows, by index from -1 (all before the window) on, in pixels from the picture's top.
  // names: whether the rows are named in the picture, as they are where parts are stacked.
  show(state, places, width, height, names = false) {
    this.state = state;
    this.n = state.model;
    this.bands(width);
    this.draw(places, width, height);
    if (names) this.nameRows(places);
    this.showHeads();
    this.showLens(width);
  }

  // How wide each block is drawn: the chosen one of many is opened.
  bands(width) {
    const { layers } = this.n;
    const open = layers > 8 ? Math.min(width * 0.22, 110) : width / layers;
    const other = layers > 1 ? (width - open) / (layers - 1) : width;
    this.at = [0];
    for (let layer = 0; layer < layers; layer++) {
      this.at.push(this.at[layer] + (layer === this.state.chosen.layer ? open : other));
    }
  }

  draw(places, width, height) {
    const { text, chosen, followed, followedRow } = this.state;
    const svg = this.picture;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const target = places.get(followedRow);
    const made = [];
    for (let layer = 0; layer < this.n.layers; layer++) {
      const [left, right] = [this.at[layer], this.at[layer + 1]];
      const band = svgElement("rect", { class: "band", x: left, y: 0, width: right - left, height });
      band.classList.toggle("chosen", layer === chosen.layer);
      band.onclick = () => this.choose({ layer });
      band.onpointermove = (event) => this.say(this.reading(layer, event, places));
      band.onpointerleave = () => this.say(null);
      made.push(band);
    }
    for (const [i, y] of places) {
      const stream = svgElement("path", { class: i === followedRow ? "stream followed" : "stream", d: `M0 ${y}H${width}` });
      if (i === followedRow) stream.style.setProperty("--hue", followed.hue);
      made.push(stream);
    }
    for (let layer = 0; layer < this.n.layers; layer++) {
      const [left, right] = [this.at[layer], this.at[layer + 1]];
      const wide = right - left;
      const most = wide > 30 ? Math.min(wide * 0.16, 12) : wide * 0.5; // pixels a weight of 1 is wide
      for (const [i, y] of places) {
        const weight = this.weight(layer, i);
        if (!(weight >= LEAST) || i > followedRow) continue;
        const hue = i < 0 ? "rgb(138, 143, 152)" : text.rows[i].hue;
        const end = right - Math.min(wide * 0.12, 6);
        const bend = left + (end - left) * 0.55;
        const path = svgElement("path", { class: wide > 30 ? "flow wide" : "flow", d: `M${left} ${y}C${bend} ${y} ${bend} ${target} ${end} ${target}` });
        path.style.stroke = hue;
        path.style.strokeWidth = Math.max(most * weight, 0.6).toFixed(2);
        path.style.opacity = (0.25 + 0.7 * weight).toFixed(3);
        made.push(path);
        const dot = svgElement("circle", { class: "dot", cx: left, cy: y, r: ((wide > 30 ? 1.2 + 3.2 * Math.sqrt(weight) : 0.6 + Math.min(wide * 0.35, 3) * Math.sqrt(weight))).toFixed(2) });
        dot.style.fill = hue;
        dot.style.opacity = (0.35 + 0.65 * weight).toFixed(3);
        made.push(dot);
      }
      const node = svgElement("circle", { class: "node", cx: right, cy: target, r: wide > 30 ? 4 : 2.2 });
      node.style.setProperty("--hue", followed.hue);
      made.push(node);
      if (wide > 26) {
        const number = svgElement("text", { class: "number", x: left + wide / 2, y: "1.15em", "text-anchor": "middle" });
        number.textContent = layer;
        made.push(number);
      }
    }
    svg.replaceChildren(...made);
    svg.setAttribute("aria-hidden", "true");
  }

  nameRows(places) {
    for (const [i, y] of places) {
      const name = svgElement("text", { class: "name", x: 4, y: y - 5 });
      const { rows, earlier } = this.state.text;
      name.textContent = i < 0 ? fill(this.state.labels.earlier, { n: fmtCount(earlier) }) : rows[i].text;
      this.picture.append(name);
    }
  }

  reading(layer, event, places) {
    const { labels, followed, text } = this.state;
    const box = this.picture.getBoundingClientRect();
    const y = ((event.clientY - box.top) * this.picture.viewBox.baseVal.height) / box.height;
    const [i] = [...places].reduce((best, place) => (Math.abs(place[1] - y) < Math.abs(best[1] - y) ? place : best));
    const to = i < 0 ? fill(labels.earlier, { n: fmtCount(text.earlier) }) : quoted(text.rows[i].text);
    const p = fmtProbability(this.weight(layer, i));
    return fill(labels.weight, { block: layer, head: this.headName(), from: quoted(followed.text), to, p });
  }

  // The row the followed token attends to most: [index, weight].
  most(layer, head) {
    const { way, text } = this.state;
    let best = [0, -1];
    for (let i = text.earlier ? -1 : 0; i < way.attention.shape[2]; i++) {
      const weight = this.weight(layer, i, head);
      if (weight > best[1]) best = [i, weight];
    }
    return best;
  }

  showHeads() {
    const { chosen, labels, text, stamp } = this.state;
    if (!isNew(this.heads, stamp, chosen.layer, chosen.head, labels.heads)) return;
    this.heads.setAttribute("aria-label", labels.heads);
    const made = [];
    for (let head = -1; head < this.n.heads; head++) {
      const name = this.headName(head);
      const isChosen = head === chosen.head;
      const [i, weight] = this.most(chosen.layer, head);
      const button = element("button", { type: "button", className: "head", textContent: head < 0 ? labels.mean : head });
      button.style.setProperty("--hue", i < 0 ? "rgb(138, 143, 152)" : text.rows[i].hue);
      button.style.setProperty("--weight", weight.toFixed(3));
      button.setAttribute("role", "radio");
      button.setAttribute("aria-checked", String(isChosen));
      button.setAttribute("aria-label", name);
      button.tabIndex = isChosen ? 0 : -1;
      button.onclick = () => this.choose({ head });
      const to = i < 0 ? fill(labels.earlier, { n: fmtCount(text.earlier) }) : quoted(text.rows[i].text);
      const values = { block: chosen.layer, head: name, from: quoted(this.state.followed.text), to, p: fmtProbability(weight) };
      button.onpointerenter = () => this.say(fill(labels.weight, values));
      button.onpointerleave = () => this.say(null);
      made.push(button);
    }
    this.heads.replaceChildren(...made);
  }

  showLens(width) {
    const { way, chosen, labels } = this.state;
    if (!isNew(this.lens, this.state.stamp, chosen.layer, chosen.candidate, way.candidate?.id, labels.blocks_of, width)) return;
    this.lens.setAttribute("aria-label", labels.blocks_of);
    const isLying = width / this.n.layers >= LYING;
    this.lens.classList.toggle("upright", !isLying);
    let free = -1;
    const last = this.n.layers - 1;
    const candidate = this.candidate();
    const made = way.lens.slice(1).map(({ id, text, p }, layer) => {
      const isChosen = layer === chosen.layer;
      const best = fill(labels.after, { block: layer, token: quoted(text), p: fmtProbability(p) });
      const its = candidate && { token: quoted(candidate.text), p: fmtProbability(candidate.probs[layer + 1]), rank: fmtCount(candidate.ranks[layer + 1]) };
      const said = its ? `${best} · ${fill(labels.candidate, its)}` : best;
      const button = element("button", { type: "button", className: "says" }, element("bdi", { textContent: text }));
      if (isLying || isChosen) button.append(element("span", { textContent: fmtPercent(p) }));
      button.style.setProperty("--p", p.toFixed(4));
      button.style.setProperty("--candidate", candidate ? candidate.probs[layer + 1].toFixed(4) : 0);
      button.classList.toggle("same", id === chosen.candidate);
      button.style.left = `${(100 * this.at[layer]) / width}%`;
      button.style.width = `${(100 * (this.at[layer + 1] - this.at[layer])) / width}%`;
      const middle = (this.at[layer] + this.at[layer + 1]) / 2;
      const isShown = isLying || isChosen || (middle >= free && clear(this.at, middle, chosen.layer, last, layer));
      if (isShown) free = middle + LABEL;
      button.classList.toggle("brief", !isShown);
      // What would stand out of the picture begins or ends with its block.
      if (!isLying && isChosen) button.style.alignItems = middle < CHOSEN / 2 ? "flex-start" : middle > width - CHOSEN / 2 ? "flex-end" : "center";
      button.setAttribute("role", "radio");
      button.setAttribute("aria-checked", String(isChosen));
      button.setAttribute("aria-label", said);
      button.tabIndex = isChosen ? 0 : -1;
      button.onclick = () => this.choose({ layer });
      button.onpointerenter = () => this.say(said);
      button.onpointerleave = () => this.say(null);
      return button;
    });
    this.lens.replaceChildren(...made);
  }

  // The numbers of the candidate that the reader follows, once the page has told them.
  candidate() {
    const { way, chosen } = this.state;
    return chosen.candidate !== null && way.candidate?.id === chosen.candidate ? way.candidate : null;
  }

  // What a followed candidate's way is, in a sentence. reading: of its bar.
  wayOf(reading, id) {
    const { way, labels } = this.state;
    const n = way.lens.slice(1).filter((said) => said.id === id).length;
    return `${reading} · ${fill(labels.candidate_best, { n, layers: this.n.layers })}`;
  }

  note(node) {
    setText(node, this.headName());
  }
}

// Whether an upright label stands clear of the chosen block's, which is always there, and of the last one's.
function clear(at, middle, chosen, last, layer) {
  const away = (other) => Math.abs((at[other] + at[other + 1]) / 2 - middle);
  const from = Math.min(Math.max((at[chosen] + at[chosen + 1]) / 2 - CHOSEN / 2, at[0]), at[last + 1] - CHOSEN);
  const isClear = middle + LABEL / 2 <= from || middle - LABEL / 2 >= from + CHOSEN;
  return isClear && (layer === last || away(last) >= LABEL);
}
