// A browser takes half a minute to lay out a megabyte in a text field. So what is pasted goes to the server whole, and
// the field gets its beginning; such a text is replaced by pasting again, not edited.

const SETTLE_MS = 600; // typing is sent when it rests, or when the field is left

const fill = (template, values) => template.replace(/\{(\w+)\}/g, (_all, name) => values[name].toLocaleString("en"));

/** The first `limit` characters as Python counts them: a surrogate pair is one, and is not cut apart. */
export function clip(text, limit) {
  if (text.length <= limit) return [text, countOf(text)];
  const length = countOf(text);
  let end = 0;
  for (let taken = 0; end < text.length && taken < limit; taken += 1) end += text.codePointAt(end) > 0xffff ? 2 : 1;
  return [text.slice(0, end), length];
}

function countOf(text) {
  let pairs = 0;
  for (let index = 0; index + 1 < text.length; index += 1) {
    if ((text.charCodeAt(index) & 0xfc00) === 0xd800 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) pairs += 1;
  }
  return text.length - pairs;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const find = (selector) => parentElement.querySelector(selector);
  const root = find(".long");
  const field = find("textarea");
  const { wording, limit, laid_out: laidOut } = data;

  const say = (length, given = length) => {
    const held = length > laidOut ? fill(wording.held, { n: length, shown: laidOut }) : "";
    find(".state").textContent = given > limit ? `${fill(wording.refused, { n: given, limit })} ${held}` : held;
    find(".clear").hidden = length === 0;
    field.readOnly = length > laidOut;
  };
  const take = (given) => {
    clearTimeout(root.timer);
    const [text, length] = clip(given, limit);
    const [beginning] = clip(text, laidOut);
    if (field.value !== beginning) field.value = beginning;
    say(Math.min(length, limit), length);
    root.given = length;
    root.sent = beginning;
    setTriggerValue("text", text);
  };

  field.rows = data.rows;
  field.placeholder = wording.hint;
  field.setAttribute("aria-label", wording.label);
  find(".clear").textContent = wording.clear;
  // What is being typed is not overwritten by a rerun that was under way.
  if (root.sent === undefined || (data.beginning !== root.sent && field.value === root.sent)) {
    field.value = data.beginning;
    root.sent = data.beginning;
    root.given = undefined;
  }
  if (root.given === undefined || root.given <= limit) say(data.length);

  field.onpaste = (event) => {
    const pasted = event.clipboardData?.getData("text/plain") ?? "";
    const [before, after] = [field.value.slice(0, field.selectionStart), field.value.slice(field.selectionEnd)];
    const whole = field.readOnly ? pasted : before + pasted + after;
    if (whole.length <= laidOut && !field.readOnly) return; // the browser does it, and undoes it
    event.preventDefault();
    take(whole);
  };
  field.oninput = () => {
    clearTimeout(root.timer);
    root.timer = setTimeout(() => take(field.value), SETTLE_MS);
  };
  field.onblur = () => {
    if (field.value !== root.sent && !field.readOnly) take(field.value);
  };
  find(".clear").onclick = () => {
    field.readOnly = false;
    take("");
    field.focus();
  };
}
