// Shows what api/flows answers. Text only ever goes in as text, never as HTML.
"use strict";

const REFRESH_MS = 10000;

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// Airflow frames this page without the right to navigate the window around it. Being of the same origin, the page
// may ask that window's own document to follow the link.
function followInAirflow(event) {
  if (window.top === window) return;
  event.preventDefault();
  const link = window.top.document.createElement("a");
  link.href = event.currentTarget.href;
  link.click();
}

function sideText(name, side) {
  return side.reachable ? `${name}: ${side.topics} topics, ${side.partitions} partitions` : `${name}: unreachable`;
}

function lastRun(flow) {
  const cell = element("td");
  const run = flow.last_run;
  if (run === null) {
    cell.append("never run");
    return cell;
  }
  const link = element("a", run.state, `state ${run.state}`);
  link.href = new URL(`../dags/${encodeURIComponent(run.dag_id)}/runs/${encodeURIComponent(run.run_id)}`, document.baseURI);
  link.addEventListener("click", followInAirflow);
  cell.append(link);
  if (run.ended) cell.append(element("small", new Date(run.ended).toLocaleString()));
  if (run.result) {
    cell.append(element("small", sideText(flow.source, run.result.source)));
    cell.append(element("small", sideText(flow.target, run.result.target)));
  }
  return cell;
}

function row(flow) {
  const made = element("tr");
  for (const text of [flow.flow, flow.source, flow.target, flow.naming, flow.schedule ?? "by hand"]) {
    made.append(element("td", text));
  }
  made.append(lastRun(flow));
  return made;
}

function showProblem(text) {
  const problem = document.getElementById("problem");
  problem.textContent = text;
  problem.hidden = text === "";
}

async function refresh() {
  let answer;
  try {
    const response = await fetch("api/flows", { headers: { Accept: "application/json" } });
    answer = await response.json();
    if (!response.ok) throw new Error(answer.error ?? answer.detail ?? `the server answered ${response.status}`);
  } catch (error) {
    showProblem(error.message);
    return;
  }
  showProblem("");
  document.getElementById("topology").textContent = `as described in ${answer.topology}`;
  const table = document.getElementById("flows");
  table.querySelector("tbody").replaceChildren(...answer.flows.map(row));
  table.hidden = false;
}

refresh();
setInterval(refresh, REFRESH_MS);
