// The address follows the session: replaceState, so that Back leads to the page before, not to a slider's last step.
export default function ({ data }) {
  const wanted = new URLSearchParams(data.query);
  for (const [name, value] of new URLSearchParams(location.search)) {
    if (name === "embed" || name === "embed_options") wanted.append(name, value);
  }
  const address = `${location.pathname}?${wanted}`;
  if (address !== location.pathname + location.search) history.replaceState(history.state, "", address);
}
