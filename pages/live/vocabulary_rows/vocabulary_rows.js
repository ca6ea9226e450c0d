// Token text is data: it reaches the page through textContent and title only.

function element(tag, name, text) {
  const made = document.createElement(tag);
  made.className = name;
  if (text !== undefined) made.textContent = text;
  return made;
}

function chipOf([text, bytes, id, cuts, note], name) {
  const chip = element("span", cuts ? "chip cut" : "chip");
  chip.append(element("bdi", "text", text), element("span", "id", note));
  chip.title = `${name}: ${text}\n${bytes}\nid ${id}${note === String(id) ? "" : `\n${note}`}`;
  chip.setAttribute("role", "listitem");
  return chip;
}

function stretchOf(stretch, names) {
  const box = element("div", "stretch");
  box.style.gridTemplateColumns = `repeat(${stretch.columns}, minmax(max-content, auto))`;
  const whole = element("bdi", "whole", stretch.text);
  whole.style.gridColumn = `1 / ${stretch.columns + 1}`;
  box.append(whole);
  stretch.rows.forEach((cells, row) => {
    for (const [first, last, chips] of cells) {
      const cell = element("span", chips.length ? "cell" : "cell none");
      cell.style.setProperty("--hue", names[row].colour);
      cell.style.gridColumn = `${first + 1} / ${last + 1}`;
      cell.style.gridRow = row + 2;
      cell.append(...chips.map((chip) => chipOf(chip, names[row].name)));
      box.append(cell);
    }
  });
  return box;
}

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".comparison");
  const drawn = JSON.stringify(data);
  if (root.drawn === drawn) return;
  root.drawn = drawn;
  const list = root.querySelector(".stretches");
  list.setAttribute("role", "list");
  list.setAttribute("aria-label", data.label);
  list.replaceChildren(...data.stretches.map((stretch) => stretchOf(stretch, data.names)));
  list.scrollTop = 0;
  root.querySelector(".names").replaceChildren(
    ...data.names.map(({ name, colour }, row) => {
      const line = element("span", "name", `${row + 1} · ${name}`);
      line.style.setProperty("--hue", colour);
      return line;
    })
  );
}
