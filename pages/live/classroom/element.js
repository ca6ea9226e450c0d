/** Return a new element with a class and a text. */
export function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

/** Set an element's text where it differs: what is read aloud is read once. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
