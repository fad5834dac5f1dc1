// A chain of identical units of work: prepare(n), issue(n), wait(), read(). One body of issue(n) a pattern.

import { Unverified } from "./gpu.js";

const WORDS = 256;
const GROUPS = 4;
const RING = 8;
const BYTES = WORDS * 4;

// n submissions of one dispatch, one wait at the end.
function perSubmit({ device, queue, pipeline, ring }) {
  return (n) => {
    for (let i = 0; i < n; i++) {
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, ring[i & 7]);
      pass.dispatchWorkgroups(GROUPS);
      pass.end();
      queue.submit([encoder.finish()]);
    }
  };
}

// k dispatches in one pass of each submission.
function perK({ device, queue, pipeline, ring, rotated, k }) {
  return (n) => {
    for (let done = 0; done < n; done += k) {
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, ring[0]);
      const end = Math.min(done + k, n);
      for (let i = done; i < end; i++) {
        if (rotated) pass.setBindGroup(0, ring[i & 7]);
        pass.dispatchWorkgroups(GROUPS);
      }
      pass.end();
      queue.submit([encoder.finish()]);
    }
  };
}

// One submission, a pass for each dispatch.
function perPass({ device, queue, pipeline, ring }) {
  return (n) => {
    const encoder = device.createCommandEncoder();
    for (let i = 0; i < n; i++) {
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, ring[i & 7]);
      pass.dispatchWorkgroups(GROUPS);
      pass.end();
    }
    queue.submit([encoder.finish()]);
  };
}

// One submission, one pass, n dispatches.
function onePass({ device, queue, pipeline, ring, rotated }) {
  return (n) => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, ring[0]);
    for (let i = 0; i < n; i++) {
      if (rotated) pass.setBindGroup(0, ring[i & 7]);
      pass.dispatchWorkgroups(GROUPS);
    }
    pass.end();
    queue.submit([encoder.finish()]);
  };
}

// llvmpipe ends a loop after so many rounds, without a word: on software adapters longer chains are split.
const SOFTWARE_LOOPS = 65535;

// One dispatch that loops as often as the buffer written by prepare(n) says; whole dispatches of `loops` before it.
function fused({ device, queue, pipeline, ring, whole, loops }) {
  return (n) => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    for (let left = n; left > loops; left -= loops) {
      pass.setBindGroup(0, whole);
      pass.dispatchWorkgroups(GROUPS);
    }
    pass.setBindGroup(0, ring[0]);
    pass.dispatchWorkgroups(GROUPS);
    pass.end();
    queue.submit([encoder.finish()]);
  };
}

// Each unit with its own wait.
function waitEach(parts, wait) {
  const single = perSubmit(parts);
  return async (n) => {
    for (let i = 0; i < n; i++) {
      single(1);
      await wait();
    }
  };
}

const ISSUE = {
  "per-submit": perSubmit, "per-k": perK, "per-pass": perPass, "one-pass": onePass,
  "fused": fused, "wait-each": waitEach, "read-each": waitEach,
};

const SELF_WAITING = new Set(["wait-each", "read-each"]);

class Unsupported extends Error {}

// The status that an error stands for.
export function kindOf(error) {
  return error instanceof Unverified ? "unverified" : error instanceof Unsupported ? "unsupported" : "failed";
}

export async function openChain(gpu, material, spec) {
  if (!(spec.pattern in ISSUE)) throw new Unsupported(`this page has no pattern ${spec.pattern}`);
  return gpu.checked(() => build(gpu, material, spec));
}

async function build({ device, fallback }, { kernels, seeds }, spec) {
  const queue = device.queue;
  const isFused = spec.pattern === "fused";
  const module = device.createShaderModule({ code: kernels[isFused ? "fused.wgsl" : "step.wgsl"] });
  const pipeline = await device.createComputePipelineAsync({ layout: "auto", compute: { module, entryPoint: "main" } });
  const { MAP_READ, COPY_DST, COPY_SRC, STORAGE, UNIFORM } = GPUBufferUsage;
  const words = new Uint32Array(seeds);

  const independent = spec.dependency === "independent";
  const states = Array.from({ length: independent ? RING : 1 }, () => {
    const buffer = device.createBuffer({ size: BYTES, usage: STORAGE | COPY_DST | COPY_SRC });
    queue.writeBuffer(buffer, 0, words);
    return buffer;
  });
  const loops = fallback ? SOFTWARE_LOOPS : Infinity;
  const [count, most] = [0, fallback ? SOFTWARE_LOOPS : 0].map((value) => {
    const buffer = device.createBuffer({ size: 4, usage: UNIFORM | COPY_DST });
    queue.writeBuffer(buffer, 0, new Uint32Array([value]));
    return buffer;
  });
  const staging = device.createBuffer({ size: BYTES, usage: MAP_READ | COPY_DST });
  const bind = (...buffers) => device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: buffers.map((buffer, binding) => ({ binding, resource: { buffer } })),
  });
  const rotated = independent || spec.bindgroup === "rotated";
  const once = isFused ? bind(states[0], count) : bind(states[0]);
  const ring = Array.from({ length: RING }, (_, i) => (rotated ? bind(states[i % states.length]) : once));

  const fetchWords = async (buffer, size) => {
    const encoder = device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, 0, staging, 0, size);
    queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ, 0, size);
    const values = new Uint32Array(staging.getMappedRange(0, size));
    const kept = size === 4 ? values[0] : Array.from(values);
    staging.unmap();
    return kept;
  };
  const byWorkDone = () => queue.onSubmittedWorkDone();
  const byMapping = () => fetchWords(states[0], 4);
  const wait = spec.wait === "map" || spec.pattern === "read-each" ? byMapping : byWorkDone;
  const waitsItself = SELF_WAITING.has(spec.pattern);
  const whole = isFused ? bind(states[0], most) : null;
  const parts = { device, queue, pipeline, ring, rotated, whole, loops, k: spec.k ?? 1 };
  const rest = (n) => (n > loops ? n - loops * (Math.ceil(n / loops) - 1) : n);

  await byWorkDone();
  return {
    prepare: isFused ? (n) => queue.writeBuffer(count, 0, new Uint32Array([rest(n)])) : () => {},
    issue: ISSUE[spec.pattern](parts, wait),
    wait: waitsItself ? () => {} : wait,
    async read() {
      const all = [];
      for (const buffer of states) all.push(await fetchWords(buffer, BYTES));
      return all;
    },
    close() {
      for (const buffer of [...states, count, most, staging]) buffer.destroy();
    },
  };
}
