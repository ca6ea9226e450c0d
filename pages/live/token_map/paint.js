// Draws the map. Token text is data: it reaches the canvas as text only.
import { project, roundNumbers, unit } from "./camera.js";

const VIRIDIS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const GREY = "rgb(138, 143, 152)";
const MAX_NAMES = 40;
const SMALL = 40; // maps of at most so many points name all of them

/** A colour between dark violet and yellow, for a share from 0 to 1. */
export function amountColour(share) {
  const place = Math.min(Math.max(share, 0), 1) * (VIRIDIS.length - 1);
  const index = Math.min(Math.floor(place), VIRIDIS.length - 2);
  const mix = VIRIDIS[index].map((from, part) => Math.round(from + (place - index) * (VIRIDIS[index + 1][part] - from)));
  return `rgb(${mix.join(",")})`;
}

export function paint(canvas, map) {
  const { data, camera, bounds, points } = map;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  }
  const style = getComputedStyle(canvas);
  const ink = { text: style.color, paper: style.getPropertyValue("--paper"), font: style.fontFamily };
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = `12px ${ink.font}`;
  const titled = data.axis_titles.length > 0;
  if (titled && data.axes === 2) paintGrid(pen, map, ink, width, height);
  const ends = titled && data.axes === 3 ? paintArrows(pen, map, width, height) : [];
  const screen = project(points, data.axes, bounds, camera, width, height);
  map.screen = screen;
  paintPoints(pen, map, screen);
  const taken = ends.map((end, axis) => paintTitle(pen, data.axis_titles[axis], end, ink, width, height));
  paintNames(pen, map, ink, screen, width, height, taken);
  if (map.polygon?.length > 1) paintPolygon(pen, map.polygon);
}

function paintGrid(pen, { data, camera, bounds }, ink, width, height) {
  const scale = unit(bounds, camera, width, height);
  const [left, right] = [-1, 1].map((side) => bounds.middle[0] + (side * width - 2 * camera.x) / (2 * scale));
  const [low, high] = [-1, 1].map((side) => bounds.middle[1] + (side * height + 2 * camera.y) / (2 * scale));
  pen.lineWidth = 1;
  pen.fillStyle = GREY;
  const line = (x1, y1, x2, y2, strong) => {
    pen.strokeStyle = `rgba(138, 143, 152, ${strong ? 0.45 : 0.16})`;
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
    pen.stroke();
  };
  pen.textAlign = "center";
  for (const value of roundNumbers(left, right, width / 110)) {
    const x = (value - left) * scale;
    line(x, 0, x, height, value === 0);
    if (x > 60 && x < width - 20) pen.fillText(String(value), x, height - 22);
  }
  pen.textAlign = "left";
  for (const value of roundNumbers(low, high, height / 90)) {
    const y = height - (value - low) * scale;
    line(0, y, width, y, value === 0);
    if (y > 20 && y < height - 40) pen.fillText(String(value), 22, y - 4);
  }
  pen.fillStyle = ink.text;
  pen.textAlign = "center";
  pen.fillText(data.axis_titles[0], width / 2, height - 6);
  pen.save();
  pen.translate(13, height / 2);
  pen.rotate(-Math.PI / 2);
  pen.fillText(data.axis_titles[1], 0, 0);
  pen.restore();
}

/** Draws the axes from the middle and returns where they end. */
function paintArrows(pen, { data, camera, bounds }, width, height) {
  const ends = [...bounds.middle];
  bounds.size.forEach((size, axis) => ends.push(...bounds.middle.map((value, other) => value + (other === axis ? size / 2 : 0))));
  const screen = project(ends, 3, bounds, camera, width, height);
  pen.strokeStyle = "rgba(138, 143, 152, 0.7)";
  pen.lineWidth = 1;
  return data.axis_titles.map((_title, axis) => {
    const end = [screen[3 * axis + 3], screen[3 * axis + 4]];
    pen.beginPath();
    pen.moveTo(screen[0], screen[1]);
    pen.lineTo(...end);
    pen.stroke();
    return end;
  });
}

/** Writes the title of an axis of three over the points, and returns the room it takes. */
function paintTitle(pen, title, [x, y], ink, width, height) {
  pen.font = `12px ${ink.font}`;
  pen.textAlign = "center";
  const half = pen.measureText(title).width / 2;
  const place = [Math.min(Math.max(x, half + 4), width - half - 4), Math.min(Math.max(y, 14), height - 6)];
  outlined(pen, title, place, ink.text, ink.paper);
  return { cx: place[0], cy: place[1], half };
}

function outlined(pen, text, place, colour, paper) {
  pen.lineJoin = "round";
  pen.strokeStyle = paper;
  pen.lineWidth = 4;
  pen.strokeText(text, ...place);
  pen.fillStyle = colour;
  pen.fillText(text, ...place);
}

function paintPoints(pen, map, screen) {
  const { data } = map;
  const n = screen.length / 3;
  const radius = (n > 1500 ? 2.6 : n > SMALL ? 3.6 : 6) * (data.axes === 3 ? 0.9 : 1);
  const order = Array.from({ length: n }, (_none, index) => index);
  if (data.axes === 3) order.sort((a, b) => screen[3 * a + 2] - screen[3 * b + 2]);
  const narrowed = map.matches.size > 0 || map.picked.size > 0;
  const stands = (index) => !narrowed || map.matches.has(index) || map.picked.has(index);
  for (const index of order) {
    const [x, y, nearness] = [screen[3 * index], screen[3 * index + 1], screen[3 * index + 2]];
    const faint = map.hidden.has(data.groups?.[index]) ? 0.05 : stands(index) ? 0.72 : 0.12;
    pen.globalAlpha = faint * (data.axes === 3 ? 0.45 + 0.55 * nearness : 1);
    pen.fillStyle = map.colours[index];
    pen.beginPath();
    pen.arc(x, y, radius * (data.axes === 3 ? 0.65 + 0.7 * nearness : 1), 0, 7);
    pen.fill();
  }
  pen.globalAlpha = 1;
  const ring = (index, colour, wide, line) => {
    pen.strokeStyle = colour;
    pen.lineWidth = line;
    pen.beginPath();
    pen.arc(screen[3 * index], screen[3 * index + 1], radius + wide, 0, 7);
    pen.stroke();
  };
  map.picked.forEach((index) => ring(index, "#009E73", 2, 1.5));
  map.matches.forEach((index) => ring(index, "#CC79A7", 3, 2));
  map.near().forEach((index) => ring(index, GREY, 3, 2));
  if (data.chosen !== null) ring(data.chosen, "#D55E00", 5, 2.5);
}

/** Names of what is marked, the most important first; one that would cover another is left out. */
function paintNames(pen, map, ink, screen, width, height, taken) {
  const { data } = map;
  const n = screen.length / 3;
  const everyone = n <= SMALL ? Array.from({ length: n }, (_none, index) => index) : [];
  const first = data.chosen === null ? [] : [data.chosen];
  const wanted = new Set([...first, ...map.near(), ...map.matches, ...map.picked, ...everyone]);
  const most = taken.length + MAX_NAMES;
  pen.textAlign = "center";
  for (const index of [...wanted].slice(0, 4 * MAX_NAMES)) {
    if (taken.length >= most) break;
    const chosen = index === data.chosen;
    pen.font = `${chosen ? "bold 14" : "13"}px ${ink.font}`;
    const name = shorten(data.labels[index]);
    const half = pen.measureText(name).width / 2;
    const [x, y] = [screen[3 * index], screen[3 * index + 1]];
    if (x < 0 || x > width || y < 0 || y > height) continue;
    const places = [[x, y - 11], [x, y + 20], [x + half + 11, y + 4], [x - half - 11, y + 4]].map(([cx, cy]) => [
      Math.min(Math.max(cx, half + 24), width - half - 2), Math.min(Math.max(cy, 14), height - 6),
    ]);
    const free = places.find(([cx, cy]) => !taken.some((box) => Math.abs(box.cx - cx) < box.half + half + 3 && Math.abs(box.cy - cy) < 15));
    if (!free) continue;
    taken.push({ cx: free[0], cy: free[1], half });
    outlined(pen, name, free, chosen ? "#D55E00" : ink.text, ink.paper);
  }
}

function paintPolygon(pen, polygon) {
  pen.beginPath();
  polygon.forEach(([x, y], index) => (index ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  pen.closePath();
  pen.fillStyle = "rgba(0, 158, 115, 0.12)";
  pen.strokeStyle = "#009E73";
  pen.lineWidth = 1.5;
  pen.fill();
  pen.stroke();
}

const shorten = (label) => ([...label].length <= 24 ? label : `${[...label].slice(0, 23).join("")}…`);
