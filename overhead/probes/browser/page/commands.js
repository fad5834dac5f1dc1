// The connection to the program that opened this page. Each POST sends the last answer and returns the next command.

const RETRIES = 8;
const MAX_ARGUMENTS = 8192; // a safe number of arguments for a call in every engine
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Refused extends Error {}

// Bytes from base64, which JSON messages use.
export const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));

// Bytes as base64.
export function base64Of(bytes) {
  let letters = "";
  for (let at = 0; at < bytes.length; at += MAX_ARGUMENTS) {
    letters += String.fromCharCode(...bytes.subarray(at, at + MAX_ARGUMENTS));
  }
  return btoa(letters);
}

async function post(path, body, secret) {
  const headers = { "Content-Type": "application/json", ...(secret ? { Authorization: `Bearer ${secret}` } : {}) };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), cache: "no-store" });
  if (!response.ok) throw new Refused(`${response.status} ${(await response.text()).slice(0, 200)}`);
  return response.json();
}

// An answer has the number of its command, so the server ignores a repeated one.
async function postWithRetries(path, body, secret) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await post(path, body, secret);
    } catch (error) {
      if (error instanceof Refused || attempt === RETRIES) throw error;
      await sleep(100 * 2 ** Math.min(attempt, 5));
    }
  }
}

// Present the one-time token, then run commands until "end". `run(command)` resolves to the fields of the answer.
export async function runCommands(token, identity, run) {
  const { secret } = await post("hello", { token, ...identity });
  let answer = { id: 0 };
  for (;;) {
    const command = await postWithRetries("next", answer, secret);
    if (command.do === "end") return;
    if (command.do === "idle") continue;
    answer = { id: command.id, ...(await run(command)) };
  }
}
