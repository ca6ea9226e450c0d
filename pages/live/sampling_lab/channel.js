// Brings one thing to the lab on the same page: the logits as bytes, the settings, or a result computed by lmcore. Each is a mount of its own, so
// that a message about one never carries the other.
export default function ({ data }) {
  const hub = (globalThis[Symbol.for("sampling lab")] ??= {});
  if (data instanceof Uint8Array) hub.bytes = data;
  else if (data.of === "result") hub.result = Uint8Array.from(atob(data.text), (c) => c.charCodeAt(0));
  else hub.settings = data;
  hub.deliver?.();
}
