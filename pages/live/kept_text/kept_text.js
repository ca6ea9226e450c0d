// A text of this tab. What the browser has no room for is not kept.
const given = new Set(); // the names of what was given back since the page was loaded

export default function ({ data, setTriggerValue }) {
  const { name, text, restores } = data;
  try {
    if (!restores) sessionStorage.setItem(name, text);
    else if (!given.has(name) && sessionStorage.getItem(name)) setTriggerValue("kept", sessionStorage.getItem(name));
    given.add(name);
  } catch {
    sessionStorage.removeItem(name);
  }
}
