// A student's question: one choice, which the server says it has.
import { element, say } from "./element.js";
import { inline } from "./inline.js";

/** Build it in `root`; return what shows the state of the connection. */
export function ballot(root, data, connection) {
  const at = `${data.lesson}.${data.step}`;
  const about = { lesson: data.lesson, step: data.step };
  if (connection.taken[at] === null) delete connection.taken[at]; // the page knows better by now
  const { labels } = data;
  const list = element("fieldset", "choices");
  const legend = element("legend", "question");
  legend.append(inline(data.question));
  list.append(legend);
  const fields = data.choices.map((choice, index) => {
    const label = element("label", index === data.right ? "choice right" : "choice");
    const field = document.createElement("input");
    field.type = "radio";
    field.name = at;
    field.disabled = data.shown;
    field.onchange = () => {
      connection.send(at, { vote: index, ...about });
      update();
    };
    const mark = element("span", "mark");
    label.append(field, mark, inline(choice));
    list.append(label);
    return { field, label, mark };
  });
  const settle = element("button", "settle", labels.settle);
  settle.onclick = () => connection.send(at, { settle: true, ...about });
  const status = element("p", "status");
  status.role = "status";
  root.replaceChildren(...(data.choices.length ? [list, settle] : []), status);

  function update() {
    const kept = connection.taken[at];
    const vote = data.shown ? data.vote : (kept ?? data.vote);
    const waits = connection.pending.get(at);
    const marked = waits ? JSON.parse(waits).vote ?? vote : vote;
    fields.forEach(({ field, label, mark }, index) => {
      field.checked = index === marked;
      label.classList.toggle("chosen", index === marked);
      if (data.shown && data.right !== null) say(mark, index === data.right ? "✓" : index === marked ? "✗" : "");
    });
    settle.hidden = !data.own || data.shown || !data.tells || vote === null || waits !== undefined;
    const warning = warns(waits);
    say(status, warning || calm(kept, vote));
    status.classList.toggle("warns", Boolean(warning));
  }

  function warns(waits) {
    if (connection.refused) return data.refusals[connection.refused] ?? data.refusals.unknown;
    if (waits) return connection.connected ? labels.sending : labels.lost;
    return connection.connected ? "" : labels.connecting;
  }

  function calm(kept, vote) {
    if (data.shown || !data.choices.length) return labels.here;
    if (kept === null) return labels.late;
    return vote === null ? labels.choose : labels.counted;
  }

  return update;
}
