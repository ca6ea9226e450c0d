import { choosable, line, redraw } from "../chips.js";
import { newest } from "../newest.js";

function build(token) {
  const element = document.createElement(token.selectable ? "button" : "span");
  element.className = `token ${token.kind}${token.starts ? " starts" : ""}`;
  element.style.setProperty("--strength", token.strength);
  element.append(line("bdi", "text", token.token), line("span", "caption", token.caption));
  element.title = token.hint;
  element.setAttribute("role", token.selectable ? "option" : token.hint ? "listitem" : "presentation");
  if (token.hint) element.setAttribute("aria-label", `${token.token} ${token.hint}`);
  return element;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".generated");
  const { label, selectable, selected } = data;
  const tokens = data.tokens.map((token) => ({ ...token, selectable: selectable && token.kind !== "prompt" }));
  root.setAttribute("role", selectable ? "listbox" : tokens.some((token) => token.hint) ? "list" : "group");
  root.setAttribute("aria-label", label);
  redraw(root, tokens, build);
  if (!selectable) return;
  const places = [...tokens.keys()].filter((index) => tokens[index].selectable); // the prompt is only read
  const options = places.map((index) => root.children[index]);
  const { isCurrent, send } = newest(root, data, setTriggerValue);
  choosable(root, options, places.indexOf(selected), isCurrent, (place) => send("index", places[place]));
}
