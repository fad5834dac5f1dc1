// issue(n) of each pattern. `work`: the dispatches of a unit, each with a pipeline and a number of workgroups. `ring`: the
// bind groups that take turns, 8 of them.

// A function that puts the dispatches of a unit into a pass. The pass already has the pipeline of the first dispatch.
function unitRecorder(work) {
  const [{ groups }] = work;
  if (work.length === 1) return (pass) => pass.dispatchWorkgroups(groups);
  return (pass) => {
    for (const { pipeline, groups: count } of work) {
      pass.setPipeline(pipeline);
      pass.dispatchWorkgroups(count);
    }
  };
}

// One submission for each dispatch.
function perSubmit({ device, queue, work, ring }) {
  return (n) => {
    for (let i = 0; i < n; i++) {
      for (const { pipeline, groups } of work) {
        const encoder = device.createCommandEncoder();
        const pass = encoder.beginComputePass();
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, ring[i & 7]);
        pass.dispatchWorkgroups(groups);
        pass.end();
        queue.submit([encoder.finish()]);
      }
    }
  };
}

// One submission with one pass for each k units.
function perK({ device, queue, work, ring, rotated, k }) {
  const dispatch = unitRecorder(work);
  return (n) => {
    for (let done = 0; done < n; done += k) {
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(work[0].pipeline);
      pass.setBindGroup(0, ring[0]);
      const end = Math.min(done + k, n);
      for (let i = done; i < end; i++) {
        if (rotated) pass.setBindGroup(0, ring[i & 7]);
        dispatch(pass);
      }
      pass.end();
      queue.submit([encoder.finish()]);
    }
  };
}

// One submission, a pass for each dispatch.
function perPass({ device, queue, work, ring }) {
  return (n) => {
    const encoder = device.createCommandEncoder();
    for (let i = 0; i < n; i++) {
      for (const { pipeline, groups } of work) {
        const pass = encoder.beginComputePass();
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, ring[i & 7]);
        pass.dispatchWorkgroups(groups);
        pass.end();
      }
    }
    queue.submit([encoder.finish()]);
  };
}

// One submission, one pass, n units.
function onePass({ device, queue, work, ring, rotated }) {
  const dispatch = unitRecorder(work);
  return (n) => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(work[0].pipeline);
    pass.setBindGroup(0, ring[0]);
    for (let i = 0; i < n; i++) {
      if (rotated) pass.setBindGroup(0, ring[i & 7]);
      dispatch(pass);
    }
    pass.end();
    queue.submit([encoder.finish()]);
  };
}

// One dispatch that loops n times; prepare(n) writes the count. If n is larger than `maxLoops`, dispatches of `maxLoops`
// loops precede it.
function fused({ device, queue, work, ring, fullGroup, maxLoops }) {
  const [{ pipeline, groups }] = work;
  return (n) => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    for (let left = n; left > maxLoops; left -= maxLoops) {
      pass.setBindGroup(0, fullGroup);
      pass.dispatchWorkgroups(groups);
    }
    pass.setBindGroup(0, ring[0]);
    pass.dispatchWorkgroups(groups);
    pass.end();
    queue.submit([encoder.finish()]);
  };
}

// A wait after each unit.
function waitEach(parts, wait) {
  const single = perSubmit(parts);
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
