// A chain of identical units of work: prepare(n), issue(n), wait(), and its buffers, written and read back.

import { Buffers } from "./buffers.js";
import { Unverified } from "./gpu.js";
import { ISSUE, SELF_WAITING } from "./patterns.js";

const RING = 8;
const STEP_BYTES = 256 * 4;
const STEP_GROUPS = 4;
// llvmpipe ends a loop after so many rounds, without a word: on software adapters longer chains are split.
const SOFTWARE_LOOPS = 65535;

class Unsupported extends Error {}

// The status that an error stands for, and its words.
export function failureOf(error) {
  const kind = error instanceof Unverified ? "unverified" : error instanceof Unsupported ? "unsupported" : "failed";
  const words = error?.message ?? String(error);
  return { kind, error: (kind === "failed" ? `${error?.name ?? "Error"}: ${words}` : words).slice(0, 1000) };
}

// The step, as `spec` asks for it, as a program with 256 seeds in each of its states.
function stepOf({ kernels, seeds }, { pattern, dependency }, fallback) {
  const state = { kind: "storage", size: STEP_BYTES, data: new Uint32Array(seeds) };
  const fused = pattern === "fused";
  return {
    code: kernels[fused ? "fused.wgsl" : "step.wgsl"],
    entries: [{ name: "main", groups: STEP_GROUPS }],
    buffers: fused ? [state, { kind: "uniform", size: 4 }] : [state],
    rounds: fused ? 1 : -1,
    loops: fallback ? SOFTWARE_LOOPS : 0,
    states: dependency === "independent" ? RING : 1,
  };
}

// Open the step under a pattern or, where there is one, a program: WGSL (`code`), its `entries` in the order of a unit's
// dispatches, and the `buffers` bound to it, by number, in group 0. The buffer `rounds` holds how often a fused kernel
// loops, `loops` at most where that is not 0. Of the first buffer there are as many as `states` says.
export async function openChain(gpu, material, spec, program) {
  if (!(spec.pattern in ISSUE)) throw new Unsupported(`this page has no pattern ${spec.pattern}`);
  return gpu.checked(() => build(gpu.device, spec, program ?? stepOf(material, spec, gpu.fallback)));
}

function refuse({ features, limits }, { needs = [], buffers }) {
  const lacking = needs.find((name) => !features.has(name));
  if (lacking) throw new Unsupported(`the adapter has no ${lacking}`);
  const largest = Math.max(...buffers.map(({ size }) => size));
  if (largest > Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize)) {
    throw new Unsupported(`the device binds less than ${largest} bytes`);
  }
}

async function build(device, spec, program) {
  refuse(device, program);
  const queue = device.queue;
  const buffers = new Buffers(device, program);
  const module = device.createShaderModule({ code: program.code });
  const layout = device.createPipelineLayout({ bindGroupLayouts: [buffers.layout] });
  const work = await Promise.all(program.entries.map(async ({ name, groups }) => (
    { groups, pipeline: await device.createComputePipelineAsync({ layout, compute: { module, entryPoint: name } }) })));

  const { states } = buffers;
  const rotated = states.length > 1 || spec.bindgroup === "rotated";
  const once = buffers.bind();
  const ring = Array.from({ length: RING }, (_, i) => (rotated ? buffers.bind([states[i % states.length]]) : once));

  const { rounds } = program;
  const isFused = spec.pattern === "fused";
  const loops = program.loops || Infinity;
  let whole = null;
  if (isFused && program.loops) {
    const most = buffers.made({ ...program.buffers[rounds], data: new Uint32Array([loops]) });
    whole = buffers.bind({ [rounds]: most });
  }
  const inLast = (n) => (n > loops ? n - loops * (Math.ceil(n / loops) - 1) : n);

  const byWorkDone = () => queue.onSubmittedWorkDone();
  const byMapping = () => buffers.copied(states.slice(0, 1), [4]);
  const wait = spec.wait === "map" || spec.pattern === "read-each" ? byMapping : byWorkDone;
  const parts = { device, queue, work, ring, rotated, whole, loops, k: spec.k ?? 1 };

  await byWorkDone();
  return {
    prepare: isFused ? (n) => buffers.write(rounds, 0, new Uint32Array([inLast(n)])) : () => {},
    issue: ISSUE[spec.pattern](parts, wait),
    wait: SELF_WAITING.has(spec.pattern) ? () => {} : wait,
    // Each state's words.
    async read() {
      const all = [];
      for (const state of states) all.push(Array.from(new Uint32Array(await buffers.copied([state], [program.buffers[0].size]))));
      return all;
    },
    fetch: (numbers) => buffers.fetch(numbers),
    // The empty submission flushes what would else be part of the next window.
    write(number, at, bytes) {
      buffers.write(number, at, bytes);
      queue.submit([]);
    },
    close: () => buffers.destroy(),
  };
}
