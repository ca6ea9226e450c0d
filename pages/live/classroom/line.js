// The connection to a class: one for the browser's tab, kept while the part that shows it is drawn anew.
const LINGERS = 3000; // ms that it outlives its part: the next page brings another
const AGAIN = [300, 800, 2000, 4000]; // ms until it is tried again, some of them by chance: a class is many

let open = null;

/** Return the connection to `path` of one who says `hello`; `heard` is called whenever something is new. */
export function line(path, hello, heard) {
  const said = JSON.stringify(hello);
  if (open?.path !== path || open.said !== said) {
    open?.close();
    open = connect(path, said);
  }
  clearTimeout(open.leaving);
  open.heard = heard;
  return open;
}

function connect(path, said) {
  const self = { path, said, connected: false, refused: "", told: null, taken: {}, pending: new Map(), tries: 0, heard() {} };
  let socket = null;
  let closed = false;

  function dial() {
    if (closed) return;
    const address = new URL(path, document.baseURI);
    address.protocol = address.protocol.replace("http", "ws");
    socket = new WebSocket(address);
    socket.onopen = () => {
      socket.send(said);
      for (const message of self.pending.values()) socket.send(message); // what was answered while it was lost
    };
    socket.onmessage = (event) => {
      const message = JSON.parse(event.data);
      self.connected = true;
      self.tries = 0;
      self.refused = message.refused ?? "";
      if (message.at) {
        const at = message.at.join(".");
        self.pending.delete(at);
        if ("took" in message) self.taken[at] = message.took;
        if ("settled" in message) self.settled = at;
      } else if (!message.refused) self.told = message;
      self.heard();
    };
    socket.onclose = () => {
      self.connected = false;
      self.heard();
      if (closed || self.refused === "unknown") return;
      const wait = self.refused ? 10000 : AGAIN[Math.min(self.tries++, AGAIN.length - 1)];
      setTimeout(dial, wait * (0.5 + Math.random()));
    };
  }

  /** Send something about a question; it is kept until the server says that it has it. */
  self.send = (at, message) => {
    const text = JSON.stringify(message);
    self.pending.set(at, text);
    if (socket?.readyState === WebSocket.OPEN) socket.send(text);
  };
  self.close = () => {
    closed = true;
    socket?.close();
    if (open === self) open = null;
  };
  self.leave = (heard) => {
    if (self.heard !== heard) return; // the next page's part has taken over
    self.heard = () => {};
    self.leaving = setTimeout(self.close, LINGERS);
  };
  dial();
  return self;
}
