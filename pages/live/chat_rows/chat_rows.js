// Two renderings of one conversation, row by row.

import { line } from "../chips.js";

function side(given) {
  const cell = line("div", given ? "side" : "side none", given ? "" : "–");
  for (const { text, id } of given?.tokens ?? []) {
    const chip = line("span", "chip", "");
    chip.append(line("bdi", "text", text), line("span", "id", id));
    cell.append(chip);
  }
  if (given?.more) cell.append(line("span", "more", given.more));
  cell.setAttribute("role", "cell");
  return cell;
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".rows");
  root.setAttribute("role", "table");
  root.setAttribute("aria-label", data.label);
  root.tabIndex = 0; // it scrolls
  const head = line("div", "row head", "");
  head.setAttribute("role", "row");
  head.append(...["", ...data.names].map((name) => line("div", "name", name)));
  head.childNodes.forEach((cell) => cell.setAttribute("role", "columnheader"));
  const rows = data.rows.map(({ label, colour, same, sides }) => {
    const row = line("div", same ? "row" : "row differs", "");
    const title = line("div", "label", label);
    title.setAttribute("role", "rowheader");
    if (colour) row.style.setProperty("--hue", colour);
    row.setAttribute("role", "row");
    row.append(title, ...sides.map(side));
    return row;
  });
  root.replaceChildren(head, ...rows, ...(data.more ? [line("div", "more", data.more)] : []));
}
