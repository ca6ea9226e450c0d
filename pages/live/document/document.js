// Half of a pair of surrogates cannot be sent to the server as text: it would close the connection for good.
export default function ({ data, parentElement }) {
  document.documentElement.lang = data.language;
  const said = parentElement.querySelector(".said");
  const clean = (event) => {
    const field = event.composedPath()[0];
    if (typeof field?.value !== "string" || field.value.isWellFormed()) return;
    // React compares with what it has seen set: the prototype's setter lets it see the change.
    const { set } = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), "value");
    const place = field.selectionStart;
    set.call(field, field.value.toWellFormed());
    field.setSelectionRange?.(place, place);
    said.textContent = data.replaced;
    clearTimeout(said.timer);
    said.timer = setTimeout(() => (said.textContent = ""), 8000);
  };
  // Before any other listener of the page: also what is typed, pasted or set by a script and then told or left.
  for (const kind of ["input", "change", "keydown", "focusout"]) window.addEventListener(kind, clean, true);
  return () => {
    for (const kind of ["input", "change", "keydown", "focusout"]) window.removeEventListener(kind, clean, true);
  };
}
