// The adapter, what it says of itself, and a device of it.

const INFO = ["vendor", "architecture", "device", "description", "backend", "type", "driver"];

// GPUAdapterInfo's fields are getters: JSON.stringify drops them, so they are copied one by one.
function describe(adapter, forced) {
  const info = adapter.info ?? {};
  const found = { forced };
  for (const name of INFO) found[name] = String(info[name] ?? "").slice(0, 200);
  found.fallback = info.isFallbackAdapter ?? adapter.isFallbackAdapter ?? null;
  return found;
}

export async function findAdapter() {
  if (!globalThis.isSecureContext) return { reason: "this page is not in a secure context, so there is no WebGPU" };
  if (!navigator.gpu) return { reason: "this browser offers no WebGPU (navigator.gpu is missing)" };
  try {
    let forced = false;
    let adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) {
      adapter = await navigator.gpu.requestAdapter({ forceFallbackAdapter: true });
      forced = true;
    }
    if (!adapter) return { reason: "the browser has WebGPU but gives no adapter (requestAdapter returned null)" };
    return { adapter, identity: describe(adapter, forced) };
  } catch (error) {
    return { reason: `requestAdapter failed: ${error.message}` };
  }
}

// What a program may need beyond the base.
const FEATURES = ["shader-f16"];
const SCOPES = ["validation", "internal", "out-of-memory"];

// A device whose errors are all seen: those inside `checked`, uncaptured ones, and its loss.
export class Gpu {
  static async open() {
    const { adapter, identity, reason } = await findAdapter();
    if (!adapter) throw new Error(reason);
    const requiredFeatures = FEATURES.filter((name) => adapter.features.has(name));
    return new Gpu(await adapter.requestDevice({ requiredFeatures }), identity.fallback === true);
  }

  constructor(device, fallback) {
    this.device = device;
    this.fallback = fallback;
    this.lost = "";
    this.stray = "";
    device.addEventListener("uncapturederror", (event) => { this.stray ||= event.error.message; });
    device.lost.then((info) => { this.lost = `the device was lost (${info.reason}): ${info.message}`; });
  }

  // Run `act` inside error scopes. What they catch is thrown as Unverified: a rejected submit is fast and silent.
  async checked(act) {
    if (this.lost) throw new Error(this.lost);
    for (const filter of SCOPES) this.device.pushErrorScope(filter);
    let result, thrown;
    try { result = await act(); } catch (error) { thrown = error; }
    const caught = await Promise.all(SCOPES.map(() => this.device.popErrorScope().catch(() => null)));
    if (this.lost) throw new Error(this.lost);
    if (thrown) throw thrown;
    const error = caught.find((found) => found);
    if (error || this.stray) throw new Unverified(`${error?.constructor.name ?? "uncaptured error"}: ${error?.message ?? this.stray}`);
    return result;
  }

  close() {
    this.device.destroy();
  }
}

export class Unverified extends Error {}
