// The map on the page: what the reader does with it. Token text reaches the page through textContent only.
import { extent, inside, startingCamera } from "./camera.js";
import { amountColour, paint } from "./paint.js";
import { animate, at, decode } from "./film.js";

const REACH = 14; // pixels from the pointer within which a point is meant
const STILL = 4; // pixels the pointer may move in a click
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

function pointer(root, map, draw, setTriggerValue) {
  const canvas = root.querySelector("canvas");
  const tip = root.querySelector(".tip");
  const { data } = map;
  const here = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const meant = ([x, y]) => {
    let [best, least] = [null, REACH];
    for (let index = 0; index < map.screen.length / 3; index += 1) {
      if (map.hidden.has(data.groups?.[index])) continue;
      const distance = Math.hypot(map.screen[3 * index] - x, map.screen[3 * index + 1] - y);
      if (distance < least) [best, least] = [index, distance];
    }
    return best;
  };
  const hover = (place) => {
    const index = meant(place);
    tip.hidden = index === null;
    if (index === null) return;
    const numbers = [...map.points.slice(index * data.axes, (index + 1) * data.axes)].map((value) => Number(value.toPrecision(6)));
    const group = data.groups ? data.group_names[data.groups[index]][0] : `${data.amount_title} ${Number(data.amounts[index].toPrecision(6))}`;
    const name = document.createElement("bdi");
    name.textContent = data.labels[index];
    tip.replaceChildren(name, `${group}\n(${numbers.join(", ")})`);
    tip.style.left = `${Math.min(place[0] + 14, Math.max(canvas.clientWidth - tip.offsetWidth - 4, 0))}px`;
    tip.style.top = `${Math.max(place[1] - tip.offsetHeight - 10, 0)}px`;
  };
  const down = new Map(); // pointers on the canvas, by id; two of them zoom
  let moved = 0;
  canvas.onpointerdown = (event) => {
    down.set(event.pointerId, here(event));
    moved = 0;
    canvas.setPointerCapture(event.pointerId);
    if (map.mode !== "move") map.polygon = [here(event)];
  };
  canvas.onpointermove = (event) => {
    const place = here(event);
    const from = down.get(event.pointerId);
    if (!from) return hover(place);
    const [dx, dy] = [place[0] - from[0], place[1] - from[1]];
    moved += Math.hypot(dx, dy);
    tip.hidden = true;
    if (map.mode === "lasso") map.polygon.push(place);
    else if (map.mode === "box") map.polygon = box(map.polygon[0], place);
    else if (down.size === 2) zoomByPinch(map, down, event.pointerId, place);
    else if (data.axes === 3 && !event.shiftKey) {
      map.camera.yaw += dx * 0.008;
      map.camera.pitch = Math.min(Math.max(map.camera.pitch + dy * 0.008, -1.5), 1.5);
    } else {
      map.camera.x += dx;
      map.camera.y += dy;
    }
    down.set(event.pointerId, place);
    draw();
  };
  canvas.onpointerup = (event) => {
    const place = here(event);
    down.delete(event.pointerId);
    const polygon = map.polygon;
    map.polygon = null;
    if (moved <= STILL) {
      hover(place);
      const index = meant(place);
      if (index !== null && index !== data.chosen) setTriggerValue("token", index);
    } else if (polygon) {
      const all = [...data.labels.keys()].filter((index) => !map.hidden.has(data.groups?.[index]));
      map.picked = new Set(all.filter((index) => inside(map.screen[3 * index], map.screen[3 * index + 1], polygon)));
      setTriggerValue("picked", [...map.picked]);
    }
    draw();
  };
  canvas.onpointercancel = (event) => {
    down.delete(event.pointerId);
    map.polygon = null;
    draw();
  };
  canvas.onpointerleave = () => (tip.hidden = true);
  canvas.onwheel = (event) => {
    if (!event.ctrlKey && document.activeElement !== canvas && !canvas.getRootNode().activeElement) return; // the page scrolls
    event.preventDefault();
    zoom(map, here(event), Math.exp(-event.deltaY * 0.0015), canvas);
    draw();
  };
  canvas.onkeydown = (event) => {
    const moves = { ArrowLeft: [30, 0], ArrowRight: [-30, 0], ArrowUp: [0, 30], ArrowDown: [0, -30] };
    const middle = [canvas.clientWidth / 2, canvas.clientHeight / 2];
    if (event.key === "+" || event.key === "-") zoom(map, middle, event.key === "+" ? 1.25 : 0.8, canvas);
    else if (!(event.key in moves)) return;
    else if (data.axes === 3) {
      map.camera.yaw += moves[event.key][0] * 0.006;
      map.camera.pitch = Math.min(Math.max(map.camera.pitch + moves[event.key][1] * 0.006, -1.5), 1.5);
    } else {
      map.camera.x += moves[event.key][0];
      map.camera.y += moves[event.key][1];
    }
    event.preventDefault();
    draw();
  };
}

const box = ([x1, y1], [x2, y2]) => [[x1, y1], [x2, y1], [x2, y2], [x1, y2]];

/** Zoom so that what lies under a place stays there. */
function zoom(map, [x, y], factor, canvas) {
  const next = Math.min(Math.max(map.camera.zoom * factor, 0.3), 200) / map.camera.zoom;
  const [fromX, fromY] = [x - canvas.clientWidth / 2, y - canvas.clientHeight / 2];
  map.camera.zoom *= next;
  map.camera.x = fromX - (fromX - map.camera.x) * next;
  map.camera.y = fromY - (fromY - map.camera.y) * next;
}

function zoomByPinch(map, down, moving, place) {
  const [[, other]] = [...down].filter(([id]) => id !== moving);
  const from = down.get(moving);
  const apart = (a, b) => Math.max(Math.hypot(a[0] - b[0], a[1] - b[1]), 1);
  map.camera.zoom = Math.min(Math.max((map.camera.zoom * apart(place, other)) / apart(from, other), 0.3), 200);
}
