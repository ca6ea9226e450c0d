// What a hand does on the map: point, choose, move, turn, zoom, encircle; and the keys that do the same.
import { inside } from "./camera.js";

const REACH = 14; // pixels from the pointer within which a point is meant
const STILL = 4; // pixels the pointer may move in a click

export function pointer(root, map, draw, setTriggerValue) {
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
    const numbers = Array.from(map.points.slice(index * data.axes, (index + 1) * data.axes), (value) => Number(value.toPrecision(6)));
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
