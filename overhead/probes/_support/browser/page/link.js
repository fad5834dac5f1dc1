// The conversation with the program that opened this page: one POST carries the last answer and brings the next command.

const RETRIES = 8;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class Refused extends Error {}

async function post(path, body, secret) {
  const headers = { "Content-Type": "application/json", ...(secret ? { Authorization: `Bearer ${secret}` } : {}) };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), cache: "no-store" });
  if (!response.ok) throw new Refused(`${response.status} ${(await response.text()).slice(0, 200)}`);
  return response.json();
}

// An answer is numbered like its command, so sending it again after a broken connection does no harm.
async function patiently(path, body, secret) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await post(path, body, secret);
    } catch (error) {
      if (error instanceof Refused || attempt === RETRIES) throw error;
      await sleep(100 * 2 ** Math.min(attempt, 5));
    }
  }
}

// Present the one-time token, then obey: `perform(command)` resolves to the answer's fields.
export async function converse(token, identity, perform) {
  const { secret } = await post("hello", { token, ...identity });
  let answer = { id: 0 };
  for (;;) {
    const command = await patiently("next", answer, secret);
    if (command.do === "end") return;
    if (command.do === "idle") continue;
    answer = { id: command.id, ...(await perform(command)) };
  }
}
