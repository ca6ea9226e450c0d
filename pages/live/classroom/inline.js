// The little Markdown that choices are written in: `code`, **bold** and *emphasis*; all else is text.
const PIECES = /(`[^`]+`|\*\*[^*]+\*\*|\*[^*]+\*)/;
const ELEMENTS = { "`": ["code", 1], "**": ["strong", 2], "*": ["em", 1] };

/** Return a text as a span. */
export function inline(text) {
  const whole = document.createElement("span");
  for (const piece of text.split(PIECES)) {
    const [, sign] = /^(`|\*\*|\*)(?=[^])/.exec(PIECES.test(piece) ? piece : "") ?? [];
    if (!sign) {
      whole.append(piece);
      continue;
    }
    const [name, length] = ELEMENTS[sign];
    const marked = document.createElement(name);
    marked.textContent = piece.slice(length, -length);
    whole.append(marked);
  }
  return whole;
}
