// The frames of a film, and the way from one to the next.

/** All places of a film, [frame, point, axis], from base64 of little-endian float32. */
export function decode(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

/** The places at a moment between 0 and the last frame; between two frames every point is on the straight way. */
export function at(places, frames, moment) {
  const size = places.length / frames;
  const from = Math.min(Math.floor(moment), frames - 1);
  const to = Math.min(from + 1, frames - 1);
  const share = moment - from;
  const made = places.slice(from * size, (from + 1) * size);
  if (share > 0) made.forEach((value, index) => (made[index] = value + share * (places[to * size + index] - value)));
  return made;
}

/** Call `step(seconds since the last call)` before each picture, until it returns false; returns a way to end it. */
export function animate(step) {
  let last = performance.now();
  let wanted = requestAnimationFrame(function next(now) {
    const seconds = Math.min((now - last) / 1000, 0.1);
    last = now;
    if (step(Math.max(seconds, 0)) !== false) wanted = requestAnimationFrame(next);
  });
  return () => cancelAnimationFrame(wanted);
}
