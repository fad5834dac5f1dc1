// Start of the page. With a token in the address a program sends commands; without one a person starts the measurement.

import { clockStep, sample } from "./clock.js";
import { failureOf, openChain } from "./chains.js";
import { Gpu, findAdapter } from "./gpu.js";
import { base64Of, bytesOf, runCommands } from "./commands.js";
import { offerManualRun } from "./manual.js";
import { View } from "./view.js";
import { VisibilityWatch } from "./visibility.js";

const view = new View();

async function loadPageData() {
  const embedded = document.getElementById("page-data");
  return embedded ? JSON.parse(embedded.textContent) : (await fetch("page-data.json")).json();
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

const COMMANDS = ["open", "write", "run", "time", "read", "fetch", "close"];

// Runs the commands of the program; messages.py documents them.
class CommandRunner {
  constructor(pageData) {
    this.pageData = pageData;
    this.chains = new Map();
    this.visibility = new VisibilityWatch();
  }

  async perform(command) {
    this.visibility.reset();
    try {
      if (!COMMANDS.includes(command.do)) throw new Error(`this page does not know how to ${command.do}`);
      const result = await this[command.do](command);
      await view.redraw(command.do === "open");
      return { ...result, visible: !this.visibility.wasHidden };
    } catch (error) {
      return failureOf(error);
    }
  }

  async open({ chain, case: spec, program }) {
    if (!this.gpu || this.gpu.lost) this.gpu = await Gpu.open();
    this.chains.set(chain, { gpu: this.gpu, chain: await openChain(this.gpu, this.pageData, spec, program) });
    view.addCase(chain, { ...spec, label: program?.label });
    view.showStatus("Measuring. Leave this tab in front and the machine alone.");
    return {};
  }

  async write({ chain, buffers, at = 0, data }) {
    const { gpu, chain: found } = this.chains.get(chain);
    await gpu.checked(() => found.write(buffers, at, bytesOf(data)));
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

  async time({ chain, ns, idle_ms, warm, buffers, data }) {
    const { gpu, chain: found } = this.chains.get(chain);
    const restored = data && { buffers, bytes: bytesOf(data) };
    const samples = await gpu.checked(() => sample(found, ns, idle_ms, warm, restored));
    view.addSamples(chain, samples);
    return { samples };
  }

  async read({ chain }) {
    const { gpu, chain: found } = this.chains.get(chain);
    return { values: await gpu.checked(() => found.read()) };
  }

  async fetch({ chain, buffers, at = 0, size }) {
    const opened = this.chains.get(chain);
    if (!at) opened.bytes = new Uint8Array(await opened.gpu.checked(() => opened.chain.fetch(buffers)));
    return { data: base64Of(opened.bytes.subarray(at, at + size)) };
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
  const pageData = await loadPageData();
  const identity = await identify(pageData);
  view.showIdentity(identity);
  if (!token) {
    await offerManualRun(pageData, identity, view);
    return;
  }
  view.showStatus("Connected; waiting for the first case.");
  const runner = new CommandRunner(pageData);
  await runCommands(token, identity, (command) => runner.perform(command));
  await view.redraw(true);
  view.showStatus("Done. The program has everything; this page can be closed.");
}

main().catch((error) => view.showStatus(`Stopped: ${error.message}`, true));
