// The prompt as a conversation: one line says what it is, and the panel below it is where it is written.
// What the reader changes is sent when a field is left, or at once with Ctrl+Enter. Texts are set as values only.

const make = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const numbered = (words, index) => words.replace("{n}", index + 1);

// root: the part's element; data: what the server sent; isCurrent: whether it may change what the reader sees;
// tell(conversation): the reader changed it.
export function conversation(root, data, isCurrent, tell) {
  const [summary, panel] = [root.querySelector(".summary"), root.querySelector(".conversation")];
  const given = data.conversation;
  root.tell = tell; // fields drawn earlier speak through the latest run of the part
  root.classList.toggle("chats", given !== null);
  summary.hidden = given === null;
  if (given === null) {
    if (panel.matches(":popover-open")) panel.hidePopover();
    root.shown = undefined;
    return;
  }
  panel.setAttribute("aria-label", data.wording.conversation);
  summary.textContent = given.messages
    .map(({ role, content, tool_calls }) => `${role}: ${content || (tool_calls ? JSON.stringify(tool_calls) : "")}`)
    .join("  ·  ");
  summary.title = summary.textContent;
  summary.ariaLabel = `${data.wording.conversation}: ${summary.textContent}`;
  summary.ariaExpanded = panel.matches(":popover-open");
  panel.ontoggle = () => {
    summary.ariaExpanded = panel.matches(":popover-open");
    panel.querySelectorAll("textarea").forEach(fit);
  };
  summary.onclick = () => {
    place(root, panel);
    panel.togglePopover();
    panel.scrollTop = panel.scrollHeight;
  };
  // A field that is left is not drawn anew: whoever left it for a button would find another button under the pointer.
  const draw = (values) => {
    root.shown = JSON.stringify(values);
    fill(panel, values, data, (changed) => {
      if (JSON.stringify(changed) === root.shown) return;
      const before = values.messages.length;
      values = changed;
      root.shown = JSON.stringify(values);
      root.tell(values);
      if (values.messages.length !== before) draw(values);
    });
  };
  if (root.shown === undefined || (isCurrent && JSON.stringify(given) !== root.shown)) draw(given);
}

function place(root, panel) {
  const [field, page] = [root.getBoundingClientRect(), document.documentElement.clientWidth];
  const width = Math.min(Math.max(field.width, 360), page - 16, 860);
  panel.style.top = `${field.bottom + 4}px`;
  panel.style.width = `${width}px`;
  panel.style.left = `${Math.max(8, Math.min(field.left, page - width - 8))}px`;
}

function fill(panel, values, { wording, roles }, tell) {
  const focused = panel.getRootNode().activeElement?.dataset?.name;
  const drop = (index) => {
    const now = read(panel, values);
    tell({ ...now, messages: now.messages.filter((_message, other) => other !== index) });
    panel.querySelector(`[data-name="content ${Math.max(index - 1, 0)}"]`)?.focus(); // its button is gone
  };
  const rows = values.messages.map((message, index) =>
    row(message, index, { wording, roles }, values.messages.length > 1 && (() => drop(index)))
  );
  const add = make("button", { type: "button", className: "add", textContent: wording.add });
  add.onclick = () => {
    const now = read(panel, values);
    const role = now.messages.at(-1)?.role === "user" ? "assistant" : "user";
    const messages = [...now.messages, { role, content: "" }];
    tell({ ...now, messages, continued: false });
    panel.querySelector(`[data-name="content ${messages.length - 1}"]`)?.focus();
  };
  const close = make("button", { type: "button", className: "close", textContent: wording.close });
  close.onclick = () => panel.hidePopover();
  panel.replaceChildren(
    make("div", { className: "messages" }, ...rows),
    make("div", { className: "below" }, add, ...switches(values, wording), close),
    tools(values, wording)
  );
  const told = () => {
    values = read(panel, values);
    for (const name of ["prompt", "continued"]) panel.querySelector(`[data-name="${name}"]`).checked = values[name];
    tell(values);
  };
  panel.onchange = told;
  panel.onkeydown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) told();
  };
  for (const area of panel.querySelectorAll("textarea")) {
    area.oninput = () => fit(area);
    area.onfocus = () => fit(area);
  }
  if (panel.matches(":popover-open")) panel.querySelectorAll("textarea").forEach(fit);
  if (focused) panel.querySelector(`[data-name="${focused}"]`)?.focus();
}

// drop: takes the message away; false where it is the only one.
function row(message, index, { wording, roles }, drop) {
  const known = roles.includes(message.role) ? roles : [...roles, message.role];
  const role = make("select", {}, ...known.map((name) => new Option(name, name, false, name === message.role)));
  role.dataset.name = `role ${index}`;
  role.setAttribute("aria-label", numbered(wording.role, index));
  const content = make("textarea", { rows: 1, spellcheck: false, value: message.content });
  content.dataset.name = `content ${index}`;
  content.setAttribute("aria-label", numbered(wording.message, index));
  const remove = make("button", { type: "button", className: "remove", textContent: "×" });
  remove.setAttribute("aria-label", numbered(wording.remove, index));
  remove.disabled = !drop;
  remove.onclick = drop || null;
  return make("div", { className: "message" }, role, content, remove, ...others(message));
}

// What a message has beside role and content, calls of tools for instance; it is only read here.
function others({ role: _role, content: _content, ...rest }) {
  return Object.entries(rest).map(([name, value]) =>
    make("div", {
      className: "other",
      textContent: `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`,
    })
  );
}

function switches(values, wording) {
  const thinking = { [wording.as_usual]: "", [wording.on]: "true", [wording.off]: "false" };
  const now = String(values.variables.enable_thinking ?? "");
  const box = (name, checked) => {
    const input = make("input", { type: "checkbox", checked });
    input.dataset.name = name;
    return make("label", {}, input, wording[name]);
  };
  const select = make("select", {});
  select.append(...Object.entries(thinking).map(([label, value]) => new Option(label, value, false, value === now)));
  select.dataset.name = "thinking";
  return [
    box("prompt", values.prompt),
    box("continued", values.continued),
    make("label", {}, wording.thinking, select),
  ];
}

function tools(values, wording) {
  const area = make("textarea", { rows: 2, spellcheck: false, value: values.tools });
  area.dataset.name = "tools";
  area.setAttribute("aria-label", wording.tools);
  return make("details", { open: values.tools !== "" }, make("summary", { textContent: wording.tools }), area);
}

/** What the panel's fields say; what a message has beside role and content stays. */
function read(panel, values) {
  const field = (name) => panel.querySelector(`[data-name="${name}"]`);
  const messages = values.messages.map((message, index) => ({
    ...message,
    role: field(`role ${index}`).value,
    content: field(`content ${index}`).value,
  }));
  const { enable_thinking: _before, ...variables } = values.variables;
  if (field("thinking").value) variables.enable_thinking = field("thinking").value === "true";
  let [prompt, continued] = [field("prompt").checked, field("continued").checked];
  if (prompt && continued) [prompt, continued] = values.continued ? [true, false] : [false, true]; // the newer one holds
  return { ...values, messages, prompt, continued, tools: field("tools").value, variables };
}

function fit(area) {
  area.style.height = "";
  area.style.height = `${Math.min(area.scrollHeight + 2, innerHeight * 0.4)}px`;
}
