// The page's beginning: who am I, and who asks? A token in the address means a program; without one a person does.

import { clockStep, sample } from "./clock.js";
import { kindOf, openChain } from "./chains.js";
import { Gpu, findAdapter } from "./gpu.js";
import { converse } from "./link.js";
import { offer } from "./byhand.js";
import { Sight } from "./sight.js";
import { View } from "./view.js";

const view = new View();

async function material() {
  const embedded = document.getElementById("material");
  return embedded ? JSON.parse(embedded.textContent) : (await fetch("material.json")).json();
}

async function sha256(text) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function brands() {
  try {
    const { fullVersionList } = await navigator.userAgentData.getHighEntropyValues(["fullVersionList"]);
    return fullVersionList.map(({ brand, version }) => `${brand} ${version}`.slice(0, 100)).slice(0, 8);
  } catch {
    return [];
  }
}

async function identify({ kernels }) {
  const { identity, reason } = await findAdapter();
  const hashes = {};
  for (const [name, text] of Object.entries(kernels)) hashes[name] = globalThis.isSecureContext ? await sha256(text) : "";
  return {
    adapter: identity ?? null, reason: reason ?? "", user_agent: navigator.userAgent.slice(0, 400), brands: await brands(),
    platform: (navigator.userAgentData?.platform ?? navigator.platform ?? "").slice(0, 100),
    cores: navigator.hardwareConcurrency ?? 0, memory_gib: Math.round(navigator.deviceMemory ?? 0),
    isolated: globalThis.crossOriginIsolated === true, clock_step_ns: clockStep(), kernels: hashes,
  };
}

// Obeys the program: open a case, time these n for it, read its values, close it.
class Servant {
  constructor(stuff) {
    this.material = stuff;
    this.chains = new Map();
    this.sight = new Sight();
  }

  async perform(command) {
    this.sight.look();
    try {
      const result = await this[{ open: "open", time: "time", read: "read", close: "close" }[command.do]](command);
      await view.settle(command.do === "open");
      return { ...result, visible: !this.sight.lost };
    } catch (error) {
      return { kind: kindOf(error), error: `${error?.name ?? "Error"}: ${error?.message ?? error}`.slice(0, 1000) };
    }
  }

  async open({ chain, case: spec }) {
    if (!this.gpu || this.gpu.lost) this.gpu = await Gpu.open();
    this.chains.set(chain, { gpu: this.gpu, chain: await openChain(this.gpu, this.material, spec) });
    view.opened(chain, spec);
    view.say("Measuring. Leave this tab in front and the machine alone.");
    return {};
  }

  async time({ chain, ns, idle_ms, warm }) {
    const { gpu, chain: found } = this.chains.get(chain);
    const samples = await gpu.checked(() => sample(found, ns, idle_ms, warm));
    view.took(chain, samples);
    return { samples };
  }

  async read({ chain }) {
    const { gpu, chain: found } = this.chains.get(chain);
    return { values: await gpu.checked(() => found.read()) };
  }

  async close({ chain }) {
    this.chains.get(chain)?.chain.close();
    this.chains.delete(chain);
    return {};
  }
}

async function main() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  history.replaceState(null, "", location.pathname + location.search);
  const stuff = await material();
  const identity = await identify(stuff);
  view.identity(identity);
  if (!token) {
    await offer(stuff, identity, view);
    return;
  }
  view.say("Connected; waiting for the first case.");
  const servant = new Servant(stuff);
  await converse(token, identity, (command) => servant.perform(command));
  await view.settle(true);
  view.say("Done. The program has everything; this page can be closed.");
}

main().catch((error) => view.say(`Stopped: ${error.message}`, true));
