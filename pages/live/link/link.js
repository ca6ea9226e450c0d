// The address follows the session: replaceState, so that Back leads to the page before, not to a slider's last step.
const NEWEST = Symbol.for("the newest run that the address follows");

export default function ({ data }) {
  if (data.run < (globalThis[NEWEST] ?? 0)) return; // a call that was late: a newer run has been here
  globalThis[NEWEST] = data.run;
  const wanted = new URLSearchParams(data.query);
  for (const [name, value] of new URLSearchParams(location.search)) {
    if (name === "embed" || name === "embed_options") wanted.append(name, value);
  }
  const address = `${location.pathname}?${wanted}`;
  if (address !== location.pathname + location.search) history.replaceState(history.state, "", address);
}
