// A tab as a client: the numbers of a history, cut into two shares, each sealed to its server. Neither server alone can
// read anything of it; both together can.

import { ADD, CHANGE, TAKE_OUT, digest, messages, random } from "./message.js";
import { difference, summand } from "./numbers.js";

export { Home } from "./home.js";
export { size, summand } from "./numbers.js";

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const bytes = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const METHODS = ["fedease", "counts"];

export async function readAgreement(content) {
  const terms = JSON.parse(new TextDecoder().decode(content));
  if (terms.format !== 1 || !METHODS.includes(terms.method)) throw new Error(`agreement: format ${terms.format}, method ${terms.method}; expected format 1 and ${METHODS.join(" or ")}`);
  const keys = Object.fromEntries(["a", "b"].map((share) => [share, Uint8Array.from(atob(terms.servers[share].key), (letter) => letter.charCodeAt(0))]));
  const urls = Object.fromEntries(["a", "b"].map((share) => [share, terms.servers[share].url.replace(/\/+$/, "")]));
  return { ...terms, keys, urls, name: await digest(content), place: new Map(terms.items.map((item, place) => [item, place])) };
}

export class Contributor {
  constructor(terms, { fetch = globalThis.fetch.bind(globalThis), retries = 3 } = {}) {
    Object.assign(this, { terms, fetch, retries });
  }

  // From the address of one of the servers. `expected` is the agreement's name as the page knows it: a server that lies
  // about the agreement, and with it about the other server's key, is found out.
  static async join(url, { expected = null, ...rest } = {}) {
    const asked = rest.fetch ?? globalThis.fetch;
    const terms = await readAgreement(new Uint8Array(await (await asked(`${url}/v1/agreement`)).arrayBuffer()));
    if (expected !== null && hex(terms.name) !== expected) throw new Error("the server's agreement is not the one that this page names");
    return new Contributor(terms, rest);
  }

  // The numbers that would be sent for ids of items, oldest first; unknown ids count for nothing.
  numbers(history) {
    return summand(this.terms, this.#places(history));
  }

  // A contribution that is ready to be sent, and its receipt: keep the receipt first, then send.
  async prepare(history) {
    const contribution = random(16), secret = random(32);
    const made = await messages(this.terms, this.numbers(history), { contribution, secret }, ADD, contribution);
    return { receipt: this.#receipt(contribution, secret, history), messages: made };
  }

  // What a history says now instead of what it said when it was sent.
  async prepareChange(receipt, history) {
    const changed = difference(this.numbers(history), this.numbers(receipt.history));
    return { receipt: { ...receipt, history: this.#known(history) }, messages: await this.#about(receipt, changed, CHANGE) };
  }

  async prepareTakeOut(receipt) {
    const before = this.numbers(receipt.history);
    return { receipt, messages: await this.#about(receipt, difference(new Uint32Array(before.length), before), TAKE_OUT) };
  }

  // To a, then to b: whatever ends in between leaves a key without numbers, which is never opened. The same messages may be
  // sent again; they count once.
  async send({ messages: made }) {
    for (const share of ["a", "b"]) await this.#post(`${this.terms.urls[share]}/v1/messages`, made[share]);
  }

  async status() {
    return (await this.fetch(`${this.terms.urls.b}/v1/status`)).json();
  }

  #about(receipt, numbers, operation) {
    if (receipt.agreement !== hex(this.terms.name)) throw new Error("the receipt is of another agreement");
    const kept = { contribution: bytes(receipt.contribution), secret: bytes(receipt.secret) };
    return messages(this.terms, numbers, kept, operation, random(16));
  }

  async #post(url, body) {
    for (let attempt = 1; ; attempt += 1) {
      let answer = null;
      try {
        answer = await this.fetch(url, { method: "POST", body, headers: { "content-type": "application/octet-stream" } });
      } catch (error) {
        if (attempt > this.retries) throw error;
      }
      if (answer?.ok) return;
      if (answer && answer.status < 500) throw new Error((await answer.json().catch(() => ({}))).error ?? `status ${answer.status}`);
      if (answer && attempt > this.retries) throw new Error(`status ${answer.status}`);
      await new Promise((resolve) => { setTimeout(resolve, Math.min(2000, 100 * 2 ** attempt)); });
    }
  }

  #known(history) {
    return history.map(String).filter((id) => this.terms.place.has(id));
  }

  #places(history) {
    return this.#known(history).map((id) => this.terms.place.get(id));
  }

  #receipt(contribution, secret, history) {
    return { agreement: hex(this.terms.name), contribution: hex(contribution), secret: hex(secret), history: this.#known(history), sent: new Date().toISOString() };
  }
}
