// Texts of pieces are data: they reach the page through textContent only.
import { newest } from "../newest.js";
import { fill, fmtCount } from "../sampling_lab/format.js";

const SETTLE_MS = 250; // the number is sent once the slider rests

const counted = (values) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, typeof value === "number" ? fmtCount(value) : value]));

/** The pieces that stand after `step` merges. */
export function standing(pieces, step) {
  return pieces.filter((piece) => piece.born <= step && (piece.died === null || step < piece.died));
}

export default function ({ data, parentElement, setTriggerValue }) {
  const find = (selector) => parentElement.querySelector(selector);
  const root = find(".replay");
  const { isCurrent, send } = newest(root, data, setTriggerValue);
  const slider = find("input");
  const { pieces, steps, wording } = data;

  const draw = (step) => {
    const shown = standing(pieces, step);
    find(".pieces").replaceChildren(
      ...shown.map((piece) => {
        const element = document.createElement("bdi");
        element.className = step > 0 && piece.born === step ? "piece new" : "piece";
        element.textContent = piece.text;
        element.setAttribute("role", "listitem");
        return element;
      })
    );
    const values = { step, steps: steps.length, ...(steps[step - 1] ?? { pieces: shown.length }) };
    find(".sentence").textContent = fill(step > 0 ? wording.step : wording.start, counted(values));
    find(".count").textContent = `${fmtCount(step)} / ${fmtCount(steps.length)}`;
    find(".back").disabled = step === 0;
    find(".on").disabled = step === steps.length;
  };
  const move = (step) => {
    slider.value = step;
    draw(step);
    root.pending = true;
    clearTimeout(root.timer);
    root.timer = setTimeout(() => {
      root.pending = false;
      send("step", step);
    }, SETTLE_MS);
  };

  slider.max = steps.length;
  slider.disabled = steps.length === 0;
  slider.setAttribute("aria-label", wording.label);
  // An older answer must not move a slider that the reader has moved since.
  const text = JSON.stringify(pieces);
  if ((!root.pending && isCurrent) || root.text !== text) {
    root.pending = false;
    clearTimeout(root.timer);
    slider.value = data.step;
    draw(Math.min(data.step, steps.length));
  }
  root.text = text;
  slider.oninput = () => move(Number(slider.value));
  find(".back").onclick = () => move(Math.max(Number(slider.value) - 1, 0));
  find(".on").onclick = () => move(Math.min(Number(slider.value) + 1, steps.length));
}
