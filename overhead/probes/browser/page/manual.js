// A measurement that a person starts: run the plan of the page, then offer the raw samples as a download.

import { sample } from "./clock.js";
import { failureOf, openChain } from "./chains.js";
import { Gpu } from "./gpu.js";
import { caseName } from "./view.js";
import { VisibilityWatch } from "./visibility.js";

const $ = (id) => document.getElementById(id);

class Stopped extends Error {}

// Sample each n of the plan until a sample takes longer than both limits. Records all samples, and returns the n for the
// rounds: those in `keep`, and those whose time is not mostly the wait.
async function chooseLadder(gpu, chain, { rungs, keep, sample_ms, waits }, record) {
  const first = (await gpu.checked(() => sample(chain, [0, 0, 0, 1, 1, 1]))).map(record);
  const wait = Math.min(...first.filter(([n]) => n === 1).map((row) => row[2]));
  const limit = Math.max(sample_ms * 1e6, waits * wait);
  const ladder = [];
  for (const n of rungs) {
    const [row] = await gpu.checked(() => sample(chain, [n]));
    record(row);
    if (keep.includes(n) || row[2] > 1.5 * wait) ladder.push(n);
    if (row[2] > limit) break;
  }
  return ladder;
}

function shuffled(items) {
  const all = [...items];
  for (let i = all.length - 1; i > 0; i--) {
    const j = Math.floor(Math.random() * (i + 1));
    [all[i], all[j]] = [all[j], all[i]];
  }
  return all;
}

// One replicate: open every case on a new device, then run rounds in which the cases alternate.
async function replicate(plan, pageData, view, tick) {
  const gpu = await Gpu.open();
  try {
    return await measure(gpu, plan, pageData, view, tick);
  } finally {
    gpu.close();
  }
}

async function measure(gpu, plan, pageData, view, tick) {
  const end = performance.now() + plan.seconds * 1000;
  const active = [];
  const finished = [];
  const attempt = async (entry, action) => {
    tick();
    try {
      await action();
    } catch (error) {
      if (error instanceof Stopped) throw error;
      Object.assign(entry, failureOf(error));
      active.splice(active.indexOf(entry), 1);
    }
  };
  for (const spec of plan.cases) {
    const entry = { case: spec, trial: [], rounds: [], values: [], kind: "", error: "" };
    finished.push(entry);
    active.push(entry);
    await attempt(entry, async () => {
      entry.chain = await openChain(gpu, pageData, spec);
      view.addCase(caseName(spec), spec);
      entry.ladder = await chooseLadder(gpu, entry.chain, { ...plan, rungs: spec.rungs ?? plan.rungs }, (row) => (entry.trial.push(row), row));
    });
  }
  for (let round = 0; round < plan.rounds; round++) {
    if (round >= plan.min_rounds && performance.now() > end) break;
    for (const entry of shuffled(active)) {
      await attempt(entry, async () => {
        const rows = await gpu.checked(() => sample(entry.chain, shuffled(entry.ladder)));
        entry.rounds.push(rows);
        view.addSamples(caseName(entry.case), rows);
      });
      await view.redraw();
    }
  }
  for (const entry of [...active]) {
    await attempt(entry, async () => { entry.values = await gpu.checked(() => entry.chain.read()); });
  }
  return finished.map(({ case: { rungs, ...spec }, trial, rounds, values, kind, error }) => (
    { case: spec, trial, rounds, values, kind, error }));
}

// The plan for this browser: only the first cases if its wait polls rarely, since the others would take minutes.
async function planForBrowser(plan, pageData) {
  const gpu = await Gpu.open();
  try {
    const chain = await openChain(gpu, pageData, plan.cases[0]);
    const waits = (await gpu.checked(() => sample(chain, [0, 0, 0]))).map((row) => row[2]);
    const polls = Math.min(...waits) > plan.polling_ms * 1e6;
    return polls ? { ...plan, cases: plan.cases.slice(0, plan.polling_cases) } : plan;
  } finally {
    gpu.close();
  }
}

function download(content) {
  const url = URL.createObjectURL(new Blob([JSON.stringify(content)], { type: "application/json" }));
  const link = $("download");
  link.href = url;
  link.download = `overhead-browser-${content.created.replaceAll(/[:-]/g, "")}.json`;
  link.hidden = false;
}

async function run(pageData, identity, view) {
  const created = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const replicates = [];
  const visibility = new VisibilityWatch();
  let stopped = false, done = 0, total = 1;
  const tick = () => {
    if (stopped) throw new Stopped();
    view.progress(++done, total);
  };
  $("stop").onclick = () => { stopped = true; };
  try {
    const plan = await planForBrowser(pageData.plan, pageData);
    total = plan.replicates * plan.cases.length * (plan.rounds + 2);
    for (let i = 0; i < plan.replicates; i++) {
      view.showStatus(`Replicate ${i + 1} of ${plan.replicates}. Leave this tab in front and the machine alone.`);
      await view.redraw(true);
      replicates.push(await replicate(plan, pageData, view, tick));
      done = (total * (i + 1)) / plan.replicates;
    }
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
  }
  await view.redraw(true);
  if (!replicates.length) return view.showStatus("Stopped before the first replicate was whole: there is nothing to keep.", true);
  download({ format: "overhead-browser", version: 1, created, hidden: visibility.wasHidden, page: identity, replicates });
  view.progress(total, total);
  view.showStatus("Done. Download the samples. To see the figures: overhead show FILE");
}

export async function offerManualRun(pageData, identity, view) {
  $("by-hand").hidden = false;
  if (!identity.adapter) {
    view.showStatus(`This browser can't be measured: ${identity.reason}.`, true);
    return;
  }
  view.showStatus("Ready. Nothing is sent anywhere: the samples stay in this page until you download them.");
  $("start").disabled = false;
  $("start").onclick = async () => {
    $("start").disabled = true;
    $("stop").disabled = false;
    try {
      await run(pageData, identity, view);
    } catch (error) {
      view.showStatus(`Stopped: ${error.message}`, true);
    }
    $("stop").disabled = true;
    $("start").disabled = false;
  };
}
