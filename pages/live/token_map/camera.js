// From a place in the map to a place on the screen, in two dimensions or three.

const FILL = 0.9; // of the canvas is taken by the map at first
const CLOSER = 1.5; // in three dimensions: few points lie in the corners of their box

/** The middle and the extent of a film's places, the same for all its frames: axes stay where they are. */
export function extent(places, axes) {
  const low = Array(axes).fill(Infinity);
  const high = Array(axes).fill(-Infinity);
  places.forEach((value, index) => {
    const axis = index % axes;
    if (value < low[axis]) low[axis] = value;
    if (value > high[axis]) high[axis] = value;
  });
  return { middle: low.map((value, axis) => (value + high[axis]) / 2), size: low.map((value, axis) => high[axis] - value) };
}

export const startingCamera = () => ({ zoom: 1, x: 0, y: 0, yaw: 0.6, pitch: 0.35 });

/** Pixels for a unit of the map: alike in every direction, so that distances can be compared by eye. */
export function unit({ size }, camera, width, height) {
  const span = Math.hypot(...size) || 1;
  const fit = size.length === 2 ? Math.min(width / (size[0] || span), height / (size[1] || span)) : (CLOSER * Math.min(width, height)) / span;
  return FILL * fit * camera.zoom;
}

/** Screen places [x, y, nearness] of all points; nearness goes from 0 (far) to 1 (near) and is 1 in two dimensions. */
export function project(points, axes, bounds, camera, width, height) {
  const scale = unit(bounds, camera, width, height);
  const made = new Float32Array((points.length / axes) * 3);
  const [cosYaw, sinYaw, cosPitch, sinPitch] = [
    Math.cos(camera.yaw), Math.sin(camera.yaw), Math.cos(camera.pitch), Math.sin(camera.pitch),
  ];
  const radius = Math.hypot(...bounds.size) / 2 || 1;
  for (let from = 0, to = 0; from < points.length; from += axes, to += 3) {
    const [a, b] = [points[from] - bounds.middle[0], points[from + 1] - bounds.middle[1]];
    let [across, up, nearness] = [a, b, 1];
    if (axes === 3) {
      const c = points[from + 2] - bounds.middle[2];
      across = a * cosYaw + c * sinYaw;
      const inward = c * cosYaw - a * sinYaw;
      up = b * cosPitch - inward * sinPitch;
      nearness = 0.5 + (b * sinPitch + inward * cosPitch) / (2 * radius);
    }
    made[to] = width / 2 + camera.x + across * scale;
    made[to + 1] = height / 2 + camera.y - up * scale;
    made[to + 2] = nearness;
  }
  return made;
}

/** Round numbers between two ends, about `count` of them. */
export function roundNumbers(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const found = [];
  for (let index = Math.ceil(low / step); index * step <= high; index += 1) found.push(Number((index * step).toPrecision(12)));
  return found;
}

/** Whether a screen place lies inside a polygon (even-odd rule). */
export function inside(x, y, polygon) {
  let within = false;
  polygon.forEach(([x1, y1], index) => {
    const [x2, y2] = polygon[(index + 1) % polygon.length];
    if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) within = !within;
  });
  return within;
}
