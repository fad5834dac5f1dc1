// The adapter, its description, and a device.

const INFO = ["vendor", "architecture", "device", "description", "backend", "type", "driver"];

// The fields of GPUAdapterInfo are getters, which JSON.stringify drops.
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

// Optional features that a program may need.
const FEATURES = ["shader-f16"];
const SCOPES = ["validation", "internal", "out-of-memory"];

// A device that reports all errors: those inside `checked`, uncaptured errors, and the loss of the device.
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
    this.uncaptured = "";
    device.addEventListener("uncapturederror", (event) => { this.uncaptured ||= event.error.message; });
    device.lost.then((info) => { this.lost = `the device was lost (${info.reason}): ${info.message}`; });
  }

  // Run `action` inside error scopes. Throws Unverified for an error that they catch: a rejected submit is fast and silent.
  async checked(action) {
    if (this.lost) throw new Error(this.lost);
    for (const filter of SCOPES) this.device.pushErrorScope(filter);
    let result, thrown;
    try { result = await action(); } catch (error) { thrown = error; }
    const caught = await Promise.all(SCOPES.map(() => this.device.popErrorScope().catch(() => null)));
    if (this.lost) throw new Error(this.lost);
    if (thrown) throw thrown;
    const error = caught.find((found) => found);
    if (error || this.uncaptured) throw new Unverified(`${error?.constructor.name ?? "uncaptured error"}: ${error?.message ?? this.uncaptured}`);
    return result;
  }

  close() {
    this.device.destroy();
  }
}

export class Unverified extends Error {}
