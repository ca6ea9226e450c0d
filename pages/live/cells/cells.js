// A click on a heat map's cell. Plotly tells its own element which cell is under the pointer; the element is made anew
// by Streamlit whenever the figure changes, so it is looked up when the pointer comes.
import { newest } from "../newest.js";

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".cells");
  const { send } = newest(root, data, setTriggerValue);
  const choose = ({ points }) => {
    const cell = points.find((point) => point.data.type === "heatmap");
    if (cell) send("cell", [...cell.pointNumber, cell.curveNumber]);
  };
  const listen = (event) => {
    const chart = event.target.closest?.(`.st-key-${CSS.escape(data.chart)}`)?.querySelector(".js-plotly-plot");
    if (!chart?.on) return;
    chart.removeListener("plotly_click", chart.chooseCell ?? choose);
    chart.on("plotly_click", (chart.chooseCell = choose));
    for (const area of chart.querySelectorAll(".nsewdrag")) area.style.cursor = "pointer";
  };
  const moments = ["pointerover", "pointerdown"]; // a pointer may rest on the chart before this script is there
  for (const moment of moments) document.addEventListener(moment, listen, true);
  return () => moments.forEach((moment) => document.removeEventListener(moment, listen, true));
}
