// Without a program: run the embedded plan and offer what it gave as a download, raw.

import { sample } from "./clock.js";
import { failureOf, openChain } from "./chains.js";
import { Gpu } from "./gpu.js";
import { Sight } from "./sight.js";
import { caseName } from "./view.js";

const $ = (id) => document.getElementById(id);

class Stopped extends Error {}

// The plan's rungs up to the first whose sample takes longer than both limits; all samples are kept. Of the rungs that
// drown in the wait, only those with `keep` go into the rounds.
async function climb(gpu, chain, { rungs, keep, sample_ms, waits }, record) {
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

// One replicate: a device of its own, every case opened on it, then rounds in which the cases alternate.
async function replicate(plan, material, view, tick) {
  const gpu = await Gpu.open();
  try {
    return await measure(gpu, plan, material, view, tick);
  } finally {
    gpu.close();
  }
}

async function measure(gpu, plan, material, view, tick) {
  const end = performance.now() + plan.seconds * 1000;
  const live = [];
  const finished = [];
  const attempt = async (entry, act) => {
    tick();
    try {
      await act();
    } catch (error) {
      if (error instanceof Stopped) throw error;
      Object.assign(entry, failureOf(error));
      live.splice(live.indexOf(entry), 1);
    }
  };
  for (const spec of plan.cases) {
    const entry = { case: spec, trial: [], rounds: [], values: [], kind: "", error: "" };
    finished.push(entry);
    live.push(entry);
    await attempt(entry, async () => {
      entry.chain = await openChain(gpu, material, spec);
      view.opened(caseName(spec), spec);
      entry.ladder = await climb(gpu, entry.chain, { ...plan, rungs: spec.rungs ?? plan.rungs }, (row) => (entry.trial.push(row), row));
    });
  }
  for (let round = 0; round < plan.rounds; round++) {
    if (round >= plan.min_rounds && performance.now() > end) break;
    for (const entry of shuffled(live)) {
      await attempt(entry, async () => {
        const rows = await gpu.checked(() => sample(entry.chain, shuffled(entry.ladder)));
        entry.rounds.push(rows);
        view.took(caseName(entry.case), rows);
      });
      await view.settle();
    }
  }
  for (const entry of [...live]) {
    await attempt(entry, async () => { entry.values = await gpu.checked(() => entry.chain.read()); });
  }
  return finished.map(({ case: { rungs, ...spec }, trial, rounds, values, kind, error }) => (
    { case: spec, trial, rounds, values, kind, error }));
}

// The plan for this browser: where the wait polls rarely there is time for the first cases alone.
async function fitted(plan, material) {
  const gpu = await Gpu.open();
  try {
    const chain = await openChain(gpu, material, plan.cases[0]);
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

async function run(material, identity, view) {
  const created = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const replicates = [];
  const sight = new Sight();
  let stopped = false, done = 0, of = 1;
  const tick = () => {
    if (stopped) throw new Stopped();
    view.progress(++done, of);
  };
  $("stop").onclick = () => { stopped = true; };
  try {
    const plan = await fitted(material.plan, material);
    of = plan.replicates * plan.cases.length * (plan.rounds + 2);
    for (let i = 0; i < plan.replicates; i++) {
      view.say(`Replicate ${i + 1} of ${plan.replicates}. Leave this tab in front and the machine alone.`);
      await view.settle(true);
      replicates.push(await replicate(plan, material, view, tick));
      done = (of * (i + 1)) / plan.replicates;
    }
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
  }
  await view.settle(true);
  if (!replicates.length) return view.say("Stopped before the first replicate was whole: there is nothing to keep.", true);
  download({ format: "overhead-browser", version: 1, created, hidden: sight.lost, page: identity, replicates });
  view.progress(of, of);
  view.say("Done. Download the samples, then: overhead browser --import FILE");
}

export async function offer(material, identity, view) {
  $("by-hand").hidden = false;
  if (!identity.adapter) {
    view.say(`This browser can't be measured: ${identity.reason}.`, true);
    return;
  }
  view.say("Ready. Nothing is sent anywhere: the samples stay in this page until you download them.");
  $("start").disabled = false;
  $("start").onclick = async () => {
    $("start").disabled = true;
    $("stop").disabled = false;
    try {
      await run(material, identity, view);
    } catch (error) {
      view.say(`Stopped: ${error.message}`, true);
    }
    $("stop").disabled = true;
    $("start").disabled = false;
  };
}
