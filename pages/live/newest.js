// What the reader did last wins. A part that sends its own values numbers them; the server answers with the number of
// the newest it has taken. What comes before the answer to the latest is old, and changes nothing on screen.

// root: an element that stays while the part does; data: what the server sent, with `answered` and `session`.
// Returns whether the data may change what the reader sees, and how to send a value by its name.
export function newest(root, data, setTriggerValue) {
  const talk = (root.talk ??= { sent: 0, heard: 0, waiting: null });
  talk.send = (name, value) => {
    talk.sent = Math.max(Date.now(), talk.sent + 1); // a page opened anew counts on where it was
    talk.waiting = [name, { number: talk.sent, value }];
    setTriggerValue(...talk.waiting);
  };
  if ((data.answered ?? 0) >= talk.sent) {
    talk.heard = talk.sent;
    talk.waiting = null;
  }
  // A new session on the server, which was started again or was out of reach, has not heard what was sent meanwhile.
  if (talk.waiting && talk.session !== undefined && talk.session !== data.session) setTriggerValue(...talk.waiting);
  talk.session = data.session;
  return { isCurrent: talk.heard === talk.sent, send: talk.send };
}

// The same for what counts each time, such as a switch: Streamlit drops a message when another of the part follows
// before it was taken, so all that was not answered goes along. Returns how to send a value by its name.
export function every(root, data, setTriggerValue) {
  const talk = (root.talk ??= { sent: 0, name: "", waiting: [] });
  talk.waiting = talk.waiting.filter(({ number }) => number > (data.answered ?? 0));
  if (talk.waiting.length && talk.session !== undefined && talk.session !== data.session)
    setTriggerValue(talk.name, talk.waiting);
  talk.session = data.session;
  return (name, value) => {
    talk.sent = Math.max(Date.now(), talk.sent + 1);
    talk.name = name;
    talk.waiting = [...talk.waiting, { number: talk.sent, value }];
    setTriggerValue(name, talk.waiting);
  };
}
