// What moves when the walk comes to a part: where its numbers come from. Who asks for less motion sees a cut.

const LASTS = 500; // milliseconds

// One after another, each beginning a little later; together they take no longer than twice one's time.
function oneByOne(nodes, frames) {
  const step = Math.min(60, LASTS / Math.max(nodes.length, 1));
  nodes.forEach((node, i) =>
    node.animate(frames, { duration: LASTS, delay: step * i, easing: "ease-out", fill: "backwards" })
  );
}

const FALL = [{ opacity: 0, transform: "translateY(-8px)" }, { opacity: 1, transform: "none" }];
const UNROLL = [{ clipPath: "inset(0 100% 0 0)" }, { clipPath: "inset(0)" }];
const MOVES = {
  text: [".row", FALL],
  embedding: [".strip", UNROLL], // a row taken from the table
  position: [".row > *", FALL],
  blocks: [".flow", [{ strokeDasharray: "0 1000" }, { strokeDasharray: "1000 0" }]], // attention flowing into the position
  lens: [".says bdi", FALL],
  hidden: ["canvas", [{ clipPath: "inset(0 0 100% 0)" }, { clipPath: "inset(0)" }]],
  chances: [".track", UNROLL], // bars drawn
  draw: [".needle", [{ left: "0%" }, {}]], // the random number on the line of chances
};

// step: the part's name; root: of the overview.
export function move(step, root) {
  if (!(step in MOVES) || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const [selector, frames] = MOVES[step];
  const place = step === "draw" ? root : root.querySelector(`.part.${step}`);
  oneByOne([...place.querySelectorAll(selector)], frames);
}
