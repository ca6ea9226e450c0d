// A class above the page: a student's question with its choices, or the teacher's with the answers as bars.
import { ballot } from "./ballot.js";
import { board } from "./board.js";
import { line } from "./line.js";

const AGAIN = 8000; // ms after which a page that did not follow is asked once more: its own connection was lost
const MOST = 3; // times

export default function ({ data, parentElement, setTriggerValue }) {
  const connection = line(data.path, data.hello, heard);
  const update = (data.teaches ? board : ballot)(parentElement.querySelector(".classroom"), data, connection);
  let asked = data.turn; // the turn that the page was asked for last
  let timer = 0;

  function follow(wait, times) {
    clearTimeout(timer);
    timer = setTimeout(() => {
      setTriggerValue("turned", asked + times / 10);
      if (times < MOST) follow(AGAIN, times + 1);
    }, wait);
  }

  function heard() {
    const { told } = connection;
    if (told?.turn > asked) {
      asked = told.turn;
      follow(1000 * (told.spread ?? 0) * Math.random(), 1);
    }
    if (connection.settled === `${data.lesson}.${data.step}`) {
      connection.settled = null;
      if (!data.shown) setTriggerValue("turned", asked + 0.5);
    }
    update();
  }

  heard();
  return () => {
    clearTimeout(timer);
    connection.leave(heard);
  };
}
