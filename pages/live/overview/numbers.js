// Arrays as the page packs them, and the colours of numbers: as in pages/figures/theme.py.

// {shape, numbers} -> {shape, values, at(...index)}; null stays null.
export function unpacked(packed) {
  if (!packed) return null;
  const bytes = Uint8Array.from(atob(packed.numbers), (letter) => letter.charCodeAt(0));
  const values = new Float32Array(bytes.buffer);
  const { shape } = packed;
  const at = (...index) => values[index.reduce((place, i, axis) => place * shape[axis] + i, 0)];
  return { shape, values, at };
}

// One row of a packed [n, d] array.
export const row = ({ shape, values }, i) => values.subarray(i * shape[1], (i + 1) * shape[1]);

const NEGATIVE = [36, 132, 214];
const POSITIVE = [222, 98, 0];

// A number as a pixel on the diverging scale: blue below 0, orange above, full at the limit.
export function diverging(value, limit) {
  const [r, g, b] = value < 0 ? NEGATIVE : POSITIVE;
  const share = Math.min(Math.abs(value) / limit, 1);
  return [r, g, b, Math.round(255 * (0.04 + 0.96 * share))];
}

// Three times the root mean square: beyond it a cell has its full colour.
export function limitOf(values) {
  let sum = 0;
  for (const value of values) sum += value * value;
  return 3 * Math.sqrt(sum / Math.max(values.length, 1)) || 1;
}

// Paint numbers as the cells of a canvas, side by side or below one another.
export function paintCells(canvas, values, limit, down = false) {
  const n = values.length;
  if (canvas.width !== (down ? 1 : n) || canvas.height !== (down ? n : 1)) {
    canvas.width = down ? 1 : n;
    canvas.height = down ? n : 1;
  }
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  for (let i = 0; i < n; i++) image.data.set(diverging(values[i], limit), 4 * i);
  context.putImageData(image, 0, 0);
}

// Which cell of a canvas the pointer is over.
export function cellAt(canvas, event, n, down = false) {
  const box = canvas.getBoundingClientRect();
  const share = down ? (event.clientY - box.top) / box.height : (event.clientX - box.left) / box.width;
  return Math.min(Math.max(Math.floor(share * n), 0), n - 1);
}

// The numbers of a distribution, to write beside a bar: 4 significant digits are room enough.
export const fmtValue = (value) => String(Number(value.toPrecision(4))).replace("-", "\u2212");

// Whether a part has to be drawn anew: what it shows is not what it showed. What stays keeps the focus it may have.
export function isNew(part, ...shown) {
  const key = JSON.stringify(shown);
  if (part.shownKey === key) return false;
  part.shownKey = key;
  return true;
}

// A token inside a sentence: many are commas and spaces.
export const quoted = (text) => `"${text}"`;

export const fmtPercent = (p) => {
  if (p === 0) return "0 %";
  const percent = 100 * p;
  if (percent >= 99.995) return "100 %";
  if (percent >= 10) return `${percent.toFixed(1)} %`;
  if (percent >= 0.005) return `${percent.toFixed(2)} %`;
  return percent >= 0.0005 ? `${percent.toFixed(3)} %` : `${percent.toExponential(0)} %`;
};
