// A rendered conversation and its template. Pointing at a span marks the template's line that wrote it.

const make = (tag, className, text) =>
  Object.assign(document.createElement(tag), { className, textContent: text });

// What scrolls is reached with the keyboard, and has a name.
function scrollable(element, name) {
  element.tabIndex = 0;
  element.setAttribute("role", "region");
  element.setAttribute("aria-label", name);
}

export default function ({ data, parentElement }) {
  const [written, source] = [parentElement.querySelector(".written"), parentElement.querySelector(".source")];
  const { spans, lines, wording } = data;
  const rows = lines.map(({ text, ran }, index) => {
    const row = make("code", ran ? "line ran" : "line", text || " ");
    row.dataset.number = index + 1;
    return row;
  });
  const mark = (line) => rows.forEach((row, index) => row.classList.toggle("marked", index + 1 === line));

  const text = make("p", "text", "");
  let box = text;
  for (const span of spans) {
    if (span.prompt && box === text) {
      box = make("span", "prompt", "");
      box.title = wording.prompt;
      text.append(box);
    }
    const element = make("span", `span ${span.kind}${span.fault ? " fault" : ""}`, span.text);
    element.title = span.label;
    if (span.colour) element.style.setProperty("--hue", span.colour);
    element.onpointerenter = () => mark(span.line);
    element.onpointerleave = () => mark(null);
    box.append(element);
  }
  scrollable(text, wording.text);
  written.replaceChildren(make("h4", "", wording.text), text);
  const program = make("div", "lines", "");
  program.append(...rows);
  scrollable(program, wording.template);
  source.replaceChildren(make("h4", "", wording.template), program);
}
