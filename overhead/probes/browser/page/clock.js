// The sampling loop. It returns raw times in ns.

const now = () => performance.now();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The smallest step of the clock during 20 ms, ns.
export function clockStep() {
  let step = Infinity;
  const end = now() + 20;
  for (let last = now(); last < end;) {
    const next = now();
    if (next > last) step = Math.min(step, next - last);
    last = next;
  }
  return Math.round(step * 1e6);
}

// Sample each n once, in order. Returns rows of [n, issue_ns, total_ns]. With `warm`, one untimed unit and its wait run
// before each window. `restored`: bytes that are then written to buffers, with a wait.
export async function sample(chain, ns, idleMs = 0, warm = true, restored = null) {
  const rows = [];
  for (const n of ns) {
    if (warm) {
      chain.prepare(1);
      await chain.issue(1);
      await chain.wait();
    }
    if (restored) {
      chain.write(restored.buffers, 0, restored.bytes);
      await chain.settle();
    }
    chain.prepare(n);
    if (idleMs) await sleep(idleMs);
    const t0 = now();
    const pending = chain.issue(n);
    if (pending) await pending;
    const t1 = now();
    await chain.wait();
    const t2 = now();
    rows.push([n, Math.round((t1 - t0) * 1e6), Math.round((t2 - t0) * 1e6)]);
  }
  return rows;
}

// Wait for two frames, so that the browser draws pending changes now and not inside a window.
export async function nextFrames() {
  const frame = () => Promise.race([new Promise((resolve) => requestAnimationFrame(resolve)), sleep(100)]);
  await frame();
  await frame();
}
