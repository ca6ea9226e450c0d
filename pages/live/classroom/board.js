// The teacher's question: who is here, and how many chose what, as bars that are hidden at first.
import { element, say } from "./element.js";
import { inline } from "./inline.js";

let shownOf = ""; // the question whose bars are shown before its answer is: the next one's are hidden again

/** Build it in `root`; return what shows the state of the connection. */
export function board(root, data, connection) {
  const { labels } = data;
  const at = `${data.lesson}.${data.step}`;
  const head = element("div", "head");
  const here = element("span", "here");
  const answered = element("span", "answered");
  const warning = element("span", "warns");
  head.append(element("span", "code", data.code), here, answered, warning);
  const question = element("p", "question");
  question.append(inline(data.question));
  const list = element("ol", "rows");
  const rows = data.choices.map((choice, index) => {
    const row = element("li", index === data.right ? "row right" : "row");
    const said = element("div", "said");
    said.append(element("span", "mark", index === data.right ? "✓" : String.fromCharCode(65 + index)), inline(choice));
    const bar = element("div", "bar");
    const filled = element("div", "fill");
    const count = element("span", "count");
    bar.append(filled);
    row.append(said, bar, count);
    if (data.shown && data.beliefs[index]) row.append(element("div", "belief", data.beliefs[index]));
    list.append(row);
    return { bar, filled, count };
  });
  const toggle = element("button", "toggle");
  toggle.onclick = () => {
    shownOf = shownOf === at ? "" : at;
    update();
  };
  root.replaceChildren(head, ...(data.choices.length ? [question, list, ...(data.shown ? [] : [toggle])] : []));

  function update() {
    const { told } = connection;
    const barsShown = shownOf === at;
    const isThis = told?.of?.[0] === data.lesson && told.of[1] === data.step; // not the step before or after
    const counts = data.choices.map((_, index) => (isThis ? (told.counts[index] ?? 0) : 0));
    const all = counts.reduce((sum, n) => sum + n, 0);
    say(here, labels.here_now.replace("{n}", told?.here ?? "…"));
    say(answered, data.choices.length ? labels.answered.replace("{n}", isThis ? all : "…") : "");
    say(warning, connection.refused ? (data.refusals[connection.refused] ?? data.refusals.unknown) : connection.connected ? "" : labels.connecting);
    say(toggle, barsShown ? labels.hide : labels.show);
    toggle.ariaPressed = String(barsShown);
    rows.forEach(({ bar, filled, count }, index) => {
      const share = all ? counts[index] / all : 0;
      bar.hidden = count.hidden = !barsShown && !data.shown;
      filled.style.width = `${100 * share}%`;
      say(count, `${counts[index]} · ${Math.round(100 * share)} %`);
    });
  }

  return update;
}
