// The map on the page: what the reader does with it. Token text reaches the page through textContent only.
import { extent, startingCamera } from "./camera.js";
import { amountColour, paint } from "./paint.js";
import { animate, at, decode } from "./film.js";
import { pointer } from "./hand.js";

const SECONDS_A_FRAME = 0.8;
const SECONDS_TO_MOVE = 0.5; // from one map to the next of the same points
const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

function newMap() {
  return {
    camera: startingCamera(), hidden: new Set(), matches: new Set(), picked: new Set(), mode: "move",
    moment: 0, playing: null, moving: null,
    near() {
      return this.data.near[Math.round(this.moment)] ?? [];
    },
  };
}

export default function ({ data, parentElement, setTriggerValue }) {
  const find = (selector) => parentElement.querySelector(selector);
  const root = find(".token-map");
  const canvas = find("canvas");
  const map = (root.map ??= newMap());
  const before = map.data;
  map.data = data;
  const draw = () => paint(canvas, map);

  takePlaces(map, before, draw);
  map.colours = colours(data);
  canvas.setAttribute("aria-label", data.wording.alt);
  legend(find(".legend"), map, draw);
  film(root, map, draw);
  tools(root, map, draw, setTriggerValue);
  pointer(root, map, draw, setTriggerValue);
  draw();
  root.watching?.disconnect();
  root.watching = new ResizeObserver(draw);
  root.watching.observe(canvas);
  const dark = new MutationObserver(draw); // the theme changes by attributes further up
  dark.observe(document.documentElement, { attributes: true, subtree: false });
  return () => {
    root.watching.disconnect();
    dark.disconnect();
    map.playing?.();
    map.moving?.();
  };
}

/** Take what places there are now; the same points in another arrangement walk there. */
function takePlaces(map, before, draw) {
  const { data } = map;
  if (before?.places === data.places && before.axes === data.axes) return;
  const shown = map.points;
  map.moving?.();
  map.places = decode(data.places);
  const samePoints = before?.points === data.points && before.axes === data.axes;
  if (!samePoints) {
    map.camera = startingCamera();
    map.hidden.clear();
    map.picked.clear();
  }
  if (!samePoints || before.frames !== data.frames) map.moment = data.frame;
  const [from, to] = [map.bounds, extent(map.places, data.axes)];
  map.bounds = to;
  map.points = at(map.places, data.frames, map.moment);
  map.matches.clear();
  if (!samePoints || still() || map.playing) return;
  const end = map.points;
  let share = 0;
  const mix = (a, b) => a + share * share * (3 - 2 * share) * (b - a);
  const step = (seconds) => {
    share = Math.min(share + seconds / SECONDS_TO_MOVE, 1);
    map.points = end.map((value, index) => mix(shown[index], value));
    map.bounds = {
      middle: to.middle.map((value, axis) => mix(from.middle[axis], value)),
      size: to.size.map((value, axis) => mix(from.size[axis], value)),
    };
    draw();
    return share < 1;
  };
  step(0);
  map.moving = animate(step);
}

function colours({ groups, group_names, amounts, amount_range }) {
  if (groups) return groups.map((group) => group_names[group][1]);
  const [low, high] = amount_range;
  return amounts.map((value) => amountColour((value - low) / (high - low || 1)));
}

function legend(place, map, draw) {
  const { data } = map;
  if (!data.groups) {
    const scale = document.createElement("span");
    scale.className = "scale";
    scale.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(amountColour).join(", ")})`;
    const [low, high] = data.amount_range.map((value) => Number(value.toPrecision(4)));
    place.replaceChildren(`${data.amount_title} · ${low} `, scale, ` ${high}`);
    return;
  }
  place.replaceChildren(
    ...data.group_names.flatMap(([name, colour], group) => {
      const count = data.groups.filter((other) => other === group).length;
      if (!count) return [];
      const chip = document.createElement("button");
      chip.style.setProperty("--hue", colour);
      chip.textContent = `${name} ${count.toLocaleString("en")}`;
      chip.setAttribute("aria-pressed", String(!map.hidden.has(group)));
      chip.onclick = () => {
        if (!map.hidden.delete(group)) map.hidden.add(group);
        chip.setAttribute("aria-pressed", String(!map.hidden.has(group)));
        draw();
      };
      return [chip];
    })
  );
}

function film(root, map, draw) {
  const bar = root.querySelector(".film");
  const { data } = map;
  bar.hidden = data.frames < 2;
  root.querySelector(".neighbours").hidden = data.frames < 2;
  if (bar.hidden) return;
  const [play, slider, output] = ["button", "input", "output"].map((name) => bar.querySelector(name));
  const show = () => {
    map.points = at(map.places, data.frames, map.moment);
    slider.value = map.moment;
    const frame = Math.round(map.moment);
    output.textContent = data.frame_names[frame];
    slider.setAttribute("aria-valuetext", data.frame_names[frame]);
    play.textContent = map.playing ? "❚❚" : "▶";
    play.setAttribute("aria-label", map.playing ? data.wording.pause : data.wording.play);
    if (map.listed !== data.near_texts[frame]) listNeighbours(root, map, frame);
    draw();
  };
  const pause = () => {
    map.playing?.();
    map.playing = null;
  };
  slider.max = data.frames - 1;
  slider.setAttribute("aria-label", data.wording.film);
  slider.oninput = () => {
    pause();
    map.moment = Number(slider.value);
    show();
  };
  slider.onchange = () => {
    map.moment = Math.round(map.moment);
    show();
  };
  play.onclick = () => {
    if (map.playing) {
      pause();
      map.moment = Math.round(map.moment);
      return show();
    }
    if (map.moment >= data.frames - 1) map.moment = 0;
    map.playing = animate((seconds) => {
      map.moment = Math.min(map.moment + seconds / SECONDS_A_FRAME, map.data.frames - 1);
      if (map.moment >= map.data.frames - 1) map.playing = null;
      show();
      return map.playing !== null;
    });
    show();
  };
  show();
}

function listNeighbours(root, map, frame) {
  map.listed = map.data.near_texts[frame];
  root.querySelector(".neighbours h4").textContent = map.data.wording.near;
  root.querySelector(".neighbours ol").replaceChildren(
    ...map.listed.map(([name, score]) => {
      const line = document.createElement("li");
      const token = document.createElement("bdi");
      token.textContent = name;
      const number = document.createElement("span");
      number.textContent = score;
      line.append(token, number);
      return line;
    })
  );
}

function tools(root, map, draw, setTriggerValue) {
  const { wording } = map.data;
  const search = root.querySelector("input[type=search]");
  const found = root.querySelector(".found");
  search.placeholder = wording.search;
  search.setAttribute("aria-label", wording.search);
  const look = () => {
    const wanted = search.value.trim().toLowerCase();
    const labels = map.data.labels;
    map.matches = new Set(wanted ? [...labels.keys()].filter((index) => labels[index].toLowerCase().includes(wanted)) : []);
    found.textContent = wanted ? wording.found.replace("{n}", map.matches.size).replace("{all}", labels.length) : "";
  };
  look();
  search.oninput = () => {
    look();
    draw();
  };
  search.onkeydown = (event) => {
    if (event.isComposing || event.keyCode === 229) return; // an input method's own Enter
    const wanted = search.value.trim().toLowerCase();
    const exact = [...map.matches].find((index) => map.data.names[index].toLowerCase() === wanted);
    const first = exact ?? [...map.matches][0];
    if (event.key === "Enter" && first !== undefined) setTriggerValue("token", first);
  };
  for (const button of root.querySelectorAll("[data-mode]")) {
    const mode = button.dataset.mode;
    button.textContent = wording[mode];
    button.setAttribute("aria-pressed", String(map.mode === mode));
    button.onclick = () => {
      map.mode = mode;
      root.querySelectorAll("[data-mode]").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      root.querySelector("canvas").style.cursor = mode === "move" ? "grab" : "crosshair";
    };
  }
  const reset = root.querySelector(".reset");
  reset.textContent = wording.reset;
  reset.onclick = () => {
    map.camera = startingCamera();
    if (map.picked.size) setTriggerValue("picked", []);
    map.picked.clear();
    draw();
  };
  const save = root.querySelector(".save");
  save.textContent = wording.save;
  save.onclick = () =>
    root.querySelector("canvas").toBlob((blob) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(blob);
      link.download = "token-map.png";
      link.click();
      URL.revokeObjectURL(link.href);
    });
}
