// Shows what api/flows answers. Text only ever goes in as text, never as HTML.
"use strict";

const REFRESH_MS = 10000;
const number = new Intl.NumberFormat();

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function cell(...parts) {
  const made = element("td");
  made.append(...parts.filter((part) => part !== null));
  return made;
}

const small = (text) => element("small", text);

// Airflow frames this page without the right to navigate the window around it. Being of the same origin, the page
// may ask that window's own document to follow the link.
function followInAirflow(event) {
  if (window.top === window) return;
  event.preventDefault();
  const link = window.top.document.createElement("a");
  link.href = event.currentTarget.href;
  link.click();
}

function link(text, path, className) {
  const made = element("a", text, className);
  made.href = new URL(`../dags/${path.map(encodeURIComponent).join("/")}`, document.baseURI);
  made.addEventListener("click", followInAirflow);
  return made;
}

const runLink = (run) => link(run.state, [run.dag_id, "runs", run.run_id], `state ${run.state}`);

function duration(seconds) {
  if (seconds < 120) return `${number.format(Math.round(seconds))} s`;
  if (seconds < 7200) return `${number.format(Math.round(seconds / 60))} min`;
  return `${number.format(Math.round(seconds / 3600))} h`;
}

function size(bytes) {
  return bytes < 1e6 ? `${number.format(Math.ceil(bytes / 1e3))} kB` : `${number.format(Math.round(bytes / 1e6))} MB`;
}

const ended = (run) => (run.ended ? small(new Date(run.ended).toLocaleString()) : null);

function sideText(name, side) {
  return side.reachable ? `${name}: ${side.topics} topics, ${side.partitions} partitions` : `${name}: unreachable`;
}

function flowCell(flow) {
  const how = flow.enabled ? `${flow.naming}, ${flow.schedule}` : `${flow.naming}, disabled`;
  return cell(element("strong", flow.flow), small(how));
}

function stateCell(look) {
  if (!look || !look.state) return cell("unknown");
  return cell(element("span", look.state, `flow-state ${look.state.replaceAll(" ", "_")}`));
}

function behindCell(look) {
  if (!look || look.lag_records === null) return cell("unknown");
  const records = look.lag_records === 0 ? "nothing" : `${number.format(look.lag_records)} records`;
  const point = look.objectives ? look.objectives.recovery_point : null;
  const wanted = point && point.wanted_s !== null ? small(`${duration(point.wanted_s)} wanted`) : null;
  const late = point && point.met === false ? element("small", "recovery point missed", "bad") : null;
  return cell(records, look.lag_seconds === null ? null : small(duration(look.lag_seconds)), wanted, late);
}

function mirrorText(run) {
  if (run.recorded) {
    const rate = run.recorded.seconds ? ` in ${duration(run.recorded.seconds)}` : "";
    return `${number.format(run.recorded.records)} records, ${size(run.recorded.bytes)}${rate}`;
  }
  if (run.refused) return run.refused;
  if (run.due && run.due.length === 0) return "nothing to do";
  if (run.progress) return `${number.format(run.progress.records)} of ${number.format(run.progress.all_records)} records`;
  return null;
}

function mirrorCell(run) {
  if (run === null) return cell("never run");
  const text = mirrorText(run);
  return cell(runLink(run), ended(run), text === null ? null : small(text));
}

function lookCell(flow) {
  const run = flow.last_run;
  if (run === null) return cell("never looked");
  const sides = run.result ? [small(sideText(flow.source, run.result.source)), small(sideText(flow.target, run.result.target))] : [];
  return cell(runLink(run), ended(run), ...sides);
}

function verdictCell(look) {
  const verdict = look ? look.last_verdict : null;
  const ready = look && look.groups_ready !== null ? small(`groups: ${look.groups_ready} ready, ${look.groups_not_ready} not`) : null;
  return cell(verdict ? element("span", verdict, `verdict ${verdict}`) : "none yet", ready);
}

function actCell(flow) {
  const made = cell();
  for (const [verb, dag] of Object.entries(flow.dags)) made.append(link(verb, [dag], "act"));
  return made;
}

function row(flow) {
  const look = flow.last_run ? flow.last_run.result : null;
  const made = element("tr");
  made.append(flowCell(flow), stateCell(look), behindCell(look), mirrorCell(flow.last_mirror), lookCell(flow), verdictCell(look), actCell(flow));
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
  showProblem(answer.problem === null ? "" : `${answer.problem}\nThe flows go on by the last good version of the file.`);
  document.getElementById("topology").textContent = `as described in ${answer.topology}`;
  const table = document.getElementById("flows");
  table.querySelector("tbody").replaceChildren(...answer.flows.map(row));
  table.hidden = false;
}

refresh();
setInterval(refresh, REFRESH_MS);
