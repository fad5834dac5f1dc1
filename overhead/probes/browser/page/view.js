// The visible part of the page. It inserts text only, never markup.

import { draw, preview, time } from "./plot.js";
import { nextFrames } from "./clock.js";

const MIN_REDRAW_MS = 500;
const MAX_DRAWN_SAMPLES = 400;
const $ = (id) => document.getElementById(id);

export function caseName(spec) {
  const extra = ["k", "bindgroup", "wait"].filter((key) => spec[key] !== undefined).map((key) => `${key}=${spec[key]}`);
  return [...(spec.label ? [spec.label] : []), spec.pattern, spec.dependency ?? "chained", ...extra].join(" ");
}

export class View {
  constructor() {
    this.cases = new Map();
    this.lastRedraw = 0;
  }

  showStatus(text, bad = false) {
    $("status").textContent = text;
    $("status").classList.toggle("bad", bad);
  }

  showIdentity({ adapter, reason, isolated, clock_step_ns }) {
    const name = adapter ? adapter.description || adapter.device || [adapter.vendor, adapter.architecture].filter(Boolean).join(" ") : "";
    $("adapter").textContent = adapter ? name || "not named by the browser" : `none: ${reason}`;
    $("fallback").textContent = !adapter ? "-" : adapter.fallback === null ? "the browser does not say" : adapter.fallback ? "yes: software" : "no";
    $("backend").textContent = adapter?.backend || "the browser does not say";
    $("clock").textContent = `steps of ${time(clock_step_ns)}, page ${isolated ? "" : "not "}cross-origin isolated`;
  }

  progress(done, of) {
    $("progress").hidden = false;
    $("progress").max = of;
    $("progress").value = done;
  }

  addCase(key, spec) {
    this.cases.set(key, { name: caseName(spec), rows: [], count: 0 });
  }

  addSamples(key, rows) {
    const found = this.cases.get(key);
    found.count += rows.length;
    found.rows = [...found.rows, ...rows].slice(-MAX_DRAWN_SAMPLES);
    this.current = found;
  }

  // Draw at most twice a second, and wait until the browser has drawn: it must not draw inside a window.
  async redraw(force = false) {
    if (!force && performance.now() - this.lastRedraw < MIN_REDRAW_MS) return;
    if (this.current) {
      $("case").textContent = this.current.name;
      draw($("plot"), this.current.rows, this.current.name);
    }
    $("cases").replaceChildren(...[...this.cases.values()].map(row));
    $("results").hidden = this.cases.size === 0;
    const samples = [...this.cases.values()].reduce((sum, found) => sum + found.count, 0);
    $("count").textContent = `${samples.toLocaleString("en")} samples of ${this.cases.size} cases so far`;
    await nextFrames();
    this.lastRedraw = performance.now();
  }
}

function row({ name, rows, count }) {
  const found = preview(rows);
  const line = found?.slope > 0 ? found : null; // else the wait still hides it
  const cells = [name, String(count), line ? time(line.slope) : "-", line ? time(line.fixed) : "-"];
  const tr = document.createElement("tr");
  tr.append(...cells.map((text, i) => {
    const cell = document.createElement(i ? "td" : "th");
    if (!i) cell.scope = "row";
    cell.textContent = text;
    return cell;
  }));
  return tr;
}
