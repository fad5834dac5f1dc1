// The page's beginning: who am I, and who asks? A token in the address means a program; without one a person does.

import { bytesOf, textOf } from "./base64.js";
import { clockStep, sample } from "./clock.js";
import { failureOf, openChain } from "./chains.js";
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

const VERBS = ["open", "write", "run", "time", "read", "fetch", "close"];

// Obeys the program: open a case, time these n for it, read its values, close it. Of a case that came with a program of
// its own, `write` some bytes of a buffer, `run` units that nobody times, `fetch` what buffers hold, a piece at a time.
class Servant {
  constructor(stuff) {
    this.material = stuff;
    this.chains = new Map();
    this.sight = new Sight();
  }

  async perform(command) {
    this.sight.look();
    try {
      if (!VERBS.includes(command.do)) throw new Error(`this page does not know how to ${command.do}`);
      const result = await this[command.do](command);
      await view.settle(command.do === "open");
      return { ...result, visible: !this.sight.lost };
    } catch (error) {
      return failureOf(error);
    }
  }

  async open({ chain, case: spec, program }) {
    if (!this.gpu || this.gpu.lost) this.gpu = await Gpu.open();
    this.chains.set(chain, { gpu: this.gpu, chain: await openChain(this.gpu, this.material, spec, program) });
    view.opened(chain, { ...spec, label: program?.label });
    view.say("Measuring. Leave this tab in front and the machine alone.");
    return {};
  }

  async write({ chain, buffer = 0, at = 0, data }) {
    const { gpu, chain: found } = this.chains.get(chain);
    await gpu.checked(() => found.write(buffer, at, bytesOf(data)));
    return {};
  }

  async run({ chain, ns: [n] }) {
    const { gpu, chain: found } = this.chains.get(chain);
    await gpu.checked(async () => {
      found.prepare(n);
      await found.issue(n);
      await found.wait();
    });
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

  async fetch({ chain, buffers, at = 0, size }) {
    const opened = this.chains.get(chain);
    if (!at) opened.bytes = new Uint8Array(await opened.gpu.checked(() => opened.chain.fetch(buffers)));
    return { data: textOf(opened.bytes.subarray(at, at + size)) };
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
