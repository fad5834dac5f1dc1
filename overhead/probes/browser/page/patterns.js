// issue(n) of each pattern. `work`: the dispatches of a unit, each with a pipeline, numbers of workgroups x, y and z, and
// a `ring`: the bind groups that take turns, 8 of them.

// Functions that begin a pass, and that put the dispatches of a unit into it.
function recorder(work) {
  const [{ pipeline: first, ring, x, y, z }] = work;
  const bind = (pass) => {
    pass.setPipeline(first);
    pass.setBindGroup(0, ring[0]);
  };
  if (work.length === 1) return { begin: bind, unit: (pass) => pass.dispatchWorkgroups(x, y, z) };
  if (work.every((one) => one.ring === ring)) return { begin: bind, unit: recordAll };
  return { begin() {}, unit: recordAllWithGroups };

  function recordAll(pass) {
    for (const one of work) {
      pass.setPipeline(one.pipeline);
      pass.dispatchWorkgroups(one.x, one.y, one.z);
    }
  }

  function recordAllWithGroups(pass) {
    for (const one of work) {
      pass.setPipeline(one.pipeline);
      pass.setBindGroup(0, one.ring[0]);
      pass.dispatchWorkgroups(one.x, one.y, one.z);
    }
  }
}

// One submission for each dispatch.
function perSubmit({ device, queue, work }) {
  return (n) => {
    for (let i = 0; i < n; i++) {
      for (const { pipeline, ring, x, y, z } of work) {
        const encoder = device.createCommandEncoder();
        const pass = encoder.beginComputePass();
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, ring[i & 7]);
        pass.dispatchWorkgroups(x, y, z);
        pass.end();
        queue.submit([encoder.finish()]);
      }
    }
  };
}

// One submission with one pass for each k units.
function perK({ device, queue, work, rotated, k }) {
  const { begin, unit } = recorder(work);
  const [{ ring }] = work;
  return (n) => {
    for (let done = 0; done < n; done += k) {
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      begin(pass);
      const end = Math.min(done + k, n);
      for (let i = done; i < end; i++) {
        if (rotated) pass.setBindGroup(0, ring[i & 7]);
        unit(pass);
      }
      pass.end();
      queue.submit([encoder.finish()]);
    }
  };
}

// One submission, a pass for each dispatch.
function perPass({ device, queue, work }) {
  return (n) => {
    const encoder = device.createCommandEncoder();
    for (let i = 0; i < n; i++) {
      for (const { pipeline, ring, x, y, z } of work) {
        const pass = encoder.beginComputePass();
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, ring[i & 7]);
        pass.dispatchWorkgroups(x, y, z);
        pass.end();
      }
    }
    queue.submit([encoder.finish()]);
  };
}

// One submission, one pass, n units.
function onePass({ device, queue, work, rotated }) {
  const { begin, unit } = recorder(work);
  const [{ ring }] = work;
  return (n) => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    begin(pass);
    for (let i = 0; i < n; i++) {
      if (rotated) pass.setBindGroup(0, ring[i & 7]);
      unit(pass);
    }
    pass.end();
    queue.submit([encoder.finish()]);
  };
}

// One dispatch that loops n times; prepare(n) writes the count. If n is larger than `maxLoops`, dispatches of `maxLoops`
// loops precede it.
function fused({ device, queue, work, fullGroup, maxLoops }) {
  const [{ pipeline, ring, x, y, z }] = work;
  return (n) => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    for (let left = n; left > maxLoops; left -= maxLoops) {
      pass.setBindGroup(0, fullGroup);
      pass.dispatchWorkgroups(x, y, z);
    }
    pass.setBindGroup(0, ring[0]);
    pass.dispatchWorkgroups(x, y, z);
    pass.end();
    queue.submit([encoder.finish()]);
  };
}

// A wait after each unit, which is one submission with one pass.
function waitEach(parts, wait) {
  const single = perK({ ...parts, k: 1 });
  return async (n) => {
    for (let i = 0; i < n; i++) {
      single(1);
      await wait();
    }
  };
}

export const ISSUE = {
  "per-submit": perSubmit, "per-k": perK, "per-pass": perPass, "one-pass": onePass,
  "fused": fused, "wait-each": waitEach, "read-each": waitEach,
};

export const SELF_WAITING = new Set(["wait-each", "read-each"]);
