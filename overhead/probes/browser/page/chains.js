// A chain of identical units of work: prepare(n), issue(n), wait(), and access to its buffers.

import { Buffers } from "./buffers.js";
import { Unverified } from "./gpu.js";
import { ISSUE, SELF_WAITING } from "./patterns.js";

const RING = 8;
const STEP_BYTES = 256 * 4;
const STEP_GROUPS = 4;
// llvmpipe silently ends a loop after this many turns. On software adapters longer loops are split.
const SOFTWARE_MAX_LOOPS = 65535;

class Unsupported extends Error {}

// The kind of failure, and the message.
export function failureOf(error) {
  const kind = error instanceof Unverified ? "unverified" : error instanceof Unsupported ? "unsupported" : "failed";
  const message = error?.message ?? String(error);
  return { kind, error: (kind === "failed" ? `${error?.name ?? "Error"}: ${message}` : message).slice(0, 1000) };
}

// The program of the step for this case. Each state buffer starts with 256 seeds.
function stepProgram({ kernels, seeds }, { pattern, dependency }, fallback) {
  const state = { kind: "storage", size: STEP_BYTES, data: new Uint32Array(seeds) };
  const fused = pattern === "fused";
  return {
    kernels: [{ code: kernels[fused ? "fused.wgsl" : "step.wgsl"] }],
    entries: [{ name: "main", groups: [STEP_GROUPS] }],
    buffers: fused ? [state, { kind: "uniform", size: 4 }] : [state],
    count_buffer: fused ? 1 : -1,
    max_loops: fallback ? SOFTWARE_MAX_LOOPS : 0,
    states: dependency === "independent" ? RING : 1,
  };
}

// Open a case of a program, or of the step if there is none. A program has WGSL (`kernels`), the dispatches of a unit
// (`entries`), and `buffers`. `count_buffer` is the number of the buffer with the loop count of a fused kernel;
// `max_loops` limits the loops of one dispatch (0: no limit); `states` is the number of copies of the first buffer.
export async function openChain(gpu, pageData, spec, program) {
  if (!(spec.pattern in ISSUE)) throw new Unsupported(`this page has no pattern ${spec.pattern}`);
  return gpu.checked(() => build(gpu.device, spec, program ?? stepProgram(pageData, spec, gpu.fallback)));
}

function checkSupport({ features, limits }, { needs = [], buffers }) {
  const missing = needs.find((name) => !features.has(name));
  if (missing) throw new Unsupported(`the adapter has no ${missing}`);
  const largest = Math.max(...buffers.map(({ size }) => size));
  if (largest > Math.min(limits.maxStorageBufferBindingSize, limits.maxBufferSize)) {
    throw new Unsupported(`the device binds less than ${largest} bytes`);
  }
}

// The dispatches of a unit: pipeline, workgroups, and the bind groups that take turns. Kernels without bindings of their
// own share the bind groups of all buffers, as `sharedRing` makes them for a layout.
async function makeWork(device, buffers, { kernels, entries }, sharedRing) {
  const made = kernels.map(({ code, bindings }) => {
    const group = bindings ? buffers.layout(bindings.map((kind) => ({ kind }))) : buffers.layout(buffers.kinds);
    const module = device.createShaderModule({ code });
    return { module, group, layout: device.createPipelineLayout({ bindGroupLayouts: [group] }), pipelines: {} };
  });
  const rings = new Map();
  return Promise.all(entries.map(async ({ name, groups: [x, y = 1, z = 1], kernel = 0, buffers: own }) => {
    const { module, group, layout, pipelines } = made[kernel];
    pipelines[name] ??= device.createComputePipelineAsync({ layout, compute: { module, entryPoint: name } });
    if (!own && !rings.has(group)) rings.set(group, sharedRing(group));
    const ring = own ? Array(RING).fill(buffers.bind(group, own)) : rings.get(group);
    return { x, y, z, ring, pipeline: await pipelines[name], group };
  }));
}

async function build(device, spec, program) {
  checkSupport(device, program);
  const queue = device.queue;
  const buffers = new Buffers(device, program);
  const { states } = buffers;
  const all = [...program.buffers.keys()];
  const rotated = states.length > 1 || spec.bindgroup === "rotated";
  const work = await makeWork(device, buffers, program, (layout) => {
    const single = buffers.bind(layout, all);
    return Array.from({ length: RING }, (_, i) => (rotated ? buffers.bind(layout, all, [states[i % states.length]]) : single));
  });

  const { count_buffer: countBuffer = -1 } = program;
  const isFused = spec.pattern === "fused";
  const maxLoops = program.max_loops || Infinity;
  let fullGroup = null;
  if (isFused && program.max_loops) {
    const fullCount = buffers.create({ ...program.buffers[countBuffer], data: new Uint32Array([maxLoops]) });
    fullGroup = buffers.bind(work[0].group, all, { [countBuffer]: fullCount });
  }
  const loopsOfLast = (n) => (n > maxLoops ? n - maxLoops * (Math.ceil(n / maxLoops) - 1) : n);

  const byWorkDone = () => queue.onSubmittedWorkDone();
  const byMapping = () => buffers.readBack(states.slice(0, 1), [4]);
  const wait = spec.wait === "map" || spec.pattern === "read-each" ? byMapping : byWorkDone;
  const parts = { device, queue, work, rotated, fullGroup, maxLoops, k: spec.k ?? 1 };

  await byWorkDone();
  return {
    prepare: isFused ? (n) => buffers.write([countBuffer], 0, new Uint8Array(Uint32Array.of(loopsOfLast(n)).buffer)) : () => {},
    issue: ISSUE[spec.pattern](parts, wait),
    wait: SELF_WAITING.has(spec.pattern) ? () => {} : wait,
    settle: byWorkDone,
    // The words of each state buffer.
    async read() {
      const words = [];
      for (const state of states) words.push(Array.from(new Uint32Array(await buffers.readBack([state], [program.buffers[0].size]))));
      return words;
    },
    fetch: (numbers) => buffers.fetch(numbers),
    // The empty submission flushes the write, which would otherwise become part of the next window.
    write(numbers, at, bytes) {
      buffers.write(numbers, at, bytes);
      queue.submit([]);
    },
    close: () => buffers.destroy(),
  };
}
