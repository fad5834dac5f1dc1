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
    code: kernels[fused ? "fused.wgsl" : "step.wgsl"],
    entries: [{ name: "main", groups: STEP_GROUPS }],
    buffers: fused ? [state, { kind: "uniform", size: 4 }] : [state],
    count_buffer: fused ? 1 : -1,
    max_loops: fallback ? SOFTWARE_MAX_LOOPS : 0,
    states: dependency === "independent" ? RING : 1,
  };
}

// Open a case of a program, or of the step if there is none. A program has WGSL (`code`), the dispatches of a unit
// (`entries`), and the `buffers` of group 0 in order of their bindings. `count_buffer` is the number of the buffer with
// the loop count of a fused kernel; `max_loops` limits the loops of one dispatch (0: no limit); `states` is the number of
// copies of the first buffer.
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

async function build(device, spec, program) {
  checkSupport(device, program);
  const queue = device.queue;
  const buffers = new Buffers(device, program);
  const module = device.createShaderModule({ code: program.code });
  const layout = device.createPipelineLayout({ bindGroupLayouts: [buffers.layout] });
  const work = await Promise.all(program.entries.map(async ({ name, groups }) => (
    { groups, pipeline: await device.createComputePipelineAsync({ layout, compute: { module, entryPoint: name } }) })));

  const { states } = buffers;
  const rotated = states.length > 1 || spec.bindgroup === "rotated";
  const singleGroup = buffers.bind();
  const ring = Array.from({ length: RING }, (_, i) => (rotated ? buffers.bind([states[i % states.length]]) : singleGroup));

  const { count_buffer: countBuffer } = program;
  const isFused = spec.pattern === "fused";
  const maxLoops = program.max_loops || Infinity;
  let fullGroup = null;
  if (isFused && program.max_loops) {
    const fullCount = buffers.create({ ...program.buffers[countBuffer], data: new Uint32Array([maxLoops]) });
    fullGroup = buffers.bind({ [countBuffer]: fullCount });
  }
  const loopsOfLast = (n) => (n > maxLoops ? n - maxLoops * (Math.ceil(n / maxLoops) - 1) : n);

  const byWorkDone = () => queue.onSubmittedWorkDone();
  const byMapping = () => buffers.readBack(states.slice(0, 1), [4]);
  const wait = spec.wait === "map" || spec.pattern === "read-each" ? byMapping : byWorkDone;
  const parts = { device, queue, work, ring, rotated, fullGroup, maxLoops, k: spec.k ?? 1 };

  await byWorkDone();
  return {
    prepare: isFused ? (n) => buffers.write(countBuffer, 0, new Uint32Array([loopsOfLast(n)])) : () => {},
    issue: ISSUE[spec.pattern](parts, wait),
    wait: SELF_WAITING.has(spec.pattern) ? () => {} : wait,
    // The words of each state buffer.
    async read() {
      const words = [];
      for (const state of states) words.push(Array.from(new Uint32Array(await buffers.readBack([state], [program.buffers[0].size]))));
      return words;
    },
    fetch: (numbers) => buffers.fetch(numbers),
    // The empty submission flushes the write, which would otherwise become part of the next window.
    write(number, at, bytes) {
      buffers.write(number, at, bytes);
      queue.submit([]);
    },
    close: () => buffers.destroy(),
  };
}
