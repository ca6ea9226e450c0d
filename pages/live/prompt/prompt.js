// The prompt: one line at rest, as many as it has while it is written in. Enter sends, Shift+Enter breaks the line;
// while an input method composes, Enter is the method's own.
import { newest } from "../newest.js";
import { conversation } from "./conversation.js";

const KEPT = "the prompt that is too long for an address";
const KEPT_CHAT = "the conversation that is too long for an address";
const LONG_PASTE = 50_000; // characters; the browser's own way of pasting takes a minute for a million

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".prompt");
  const field = root.querySelector("textarea.text");
  const { isCurrent, send } = newest(root, data, setTriggerValue);
  field.setAttribute("aria-label", data.wording.label);
  field.title = data.wording.help;
  field.placeholder = data.wording.placeholder;

  const told = () => root.told ?? data.text;
  const isWrittenIn = field.value !== told(); // and not sent yet
  if (isCurrent && !(root.told !== undefined && isWrittenIn)) {
    field.value = data.text;
    root.told = data.text;
  }
  const tell = (text) => {
    if (field.value !== text) field.value = text;
    root.told = text;
    fit();
    keep(KEPT, text, data.longest);
    send("sent", text);
  };
  const fit = () => {
    const isActive = root.getRootNode().activeElement === field;
    field.style.height = "";
    field.scrollTop = 0;
    if (isActive) field.style.height = `${Math.min(field.scrollHeight + 2, innerHeight * 0.5)}px`;
    field.classList.toggle("grown", isActive && field.offsetHeight > root.offsetHeight + 2);
    const lines = field.value.split("\n").length;
    root.querySelector(".lines").textContent = lines > 1 ? data.wording.lines.replace("{n}", lines) : "";
  };
  field.oninput = fit;
  field.onpaste = (event) => {
    const text = event.clipboardData.getData("text/plain");
    if (text.length < LONG_PASTE) return;
    event.preventDefault();
    field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
    fit();
  };
  field.onfocus = fit;
  field.onkeydown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    tell(field.value);
  };
  field.onblur = () => {
    fit();
    if (field.value !== told()) tell(field.value);
  };
  examples(root, data, tell);
  const converse = (changed) => {
    if (changed !== null) keep(KEPT_CHAT, JSON.stringify(changed), data.longest);
    send("conversation", changed);
  };
  form(root, data, field, converse);
  conversation(root, data, isCurrent, converse);
  fit();
  if (data.restores && !root.restored && data.answered === null) {
    const kept = sessionStorage.getItem(KEPT);
    if (kept !== null) tell(kept);
  }
  if (data.conversation !== null) {
    const isFirst = !root.restored && data.answered === null && !new URLSearchParams(location.search).has("chat");
    const kept = isFirst ? sessionStorage.getItem(KEPT_CHAT) : null;
    if (kept !== null) converse(JSON.parse(kept));
    else if (isCurrent) keep(KEPT_CHAT, JSON.stringify(data.conversation), data.longest); // the server lets it grow too
  }
  root.restored = true;
}

/** The button that makes the prompt a conversation, and a text again. */
function form(root, { conversation: now, text, wording }, field, tell) {
  const button = root.querySelector(".form");
  button.textContent = now === null ? wording.text : wording.chat;
  button.title = wording.form;
  button.setAttribute("aria-label", `${wording.form}: ${button.textContent}`);
  button.setAttribute("aria-pressed", String(now !== null));
  const first = { messages: [{ role: "user", content: field.value || text }], prompt: true };
  button.onclick = () => tell(now === null ? (root.kept ?? first) : null);
  if (now !== null) root.kept = now;
}

/** A text too long for the address is kept for this tab, so that the page can be loaded anew. */
function keep(name, text, longest) {
  try {
    if (text.length > longest) sessionStorage.setItem(name, text);
    else sessionStorage.removeItem(name);
  } catch {
    sessionStorage.removeItem(name); // more than the browser keeps for a tab
  }
}

function examples(root, { examples, wording }, tell) {
  const [open, list] = [root.querySelector(".open"), root.querySelector(".examples")];
  open.setAttribute("aria-label", wording.examples);
  open.title = wording.examples;
  list.setAttribute("aria-label", wording.examples);
  list.replaceChildren(
    ...examples.map((text) => {
      const item = document.createElement("button");
      item.type = "button";
      item.setAttribute("role", "menuitem");
      item.textContent = text;
      item.onclick = () => {
        list.hidePopover();
        open.focus();
        tell(text);
      };
      return item;
    })
  );
  open.onclick = () => {
    const field = root.getBoundingClientRect();
    list.style.top = `${field.bottom + 4}px`;
    list.style.right = `${document.documentElement.clientWidth - field.right}px`;
    list.style.minWidth = `${Math.min(field.width, 280)}px`;
    list.togglePopover();
    if (list.matches(":popover-open")) list.firstChild?.focus();
  };
  list.onkeydown = (event) => {
    const items = [...list.children];
    const now = items.indexOf(root.getRootNode().activeElement);
    const to = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: items.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    items[(to + items.length) % items.length].focus();
  };
}
