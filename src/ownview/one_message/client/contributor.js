// A tab as a client: the numbers of a history, cut into two shares, each sealed to its server. Neither server alone can
// read anything of it; both together can.

import { bytesOf, hex, readAgreement } from "./agreement.js";
import { ADD, CHANGE, TAKE_OUT, messages, random } from "./message.js";
import { difference, picture, summand } from "./numbers.js";
import { proof } from "./work.js";

const PLAIN = { "content-type": "application/octet-stream" };

// What a receipt is again after a server refused its message (`refused` of the error): no batch can ever hold that message,
// as both servers must have it. null where nothing was added.
function withdrawn({ pending, ...receipt }) {
  if (pending.operation === ADD) return null;
  return { ...receipt, history: pending.operation === CHANGE ? pending.before : receipt.history, pending: null };
}

class Contributor {
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

  // What these numbers are about, as a picture of the person's own items.
  picture(history) {
    const { items, ...rest } = picture(this.terms, this.#places(history));
    return { ...rest, items: items.map((place) => this.terms.items[place]) };
  }

  // A contribution that is ready to be sent, and its receipt: keep the receipt first, then send, then keep the receipt that
  // `send` gives back.
  prepare(history) {
    const contribution = hex(random(16)), known = this.#known(history);
    const receipt = { agreement: hex(this.terms.name), contribution, secret: hex(random(32)), history: known, sent: new Date().toISOString(), out: false };
    return this.resume({ ...receipt, pending: { operation: ADD, name: contribution, key: hex(random(32)), before: [] } });
  }

  // What a history says now instead of what it said when it was sent.
  prepareChange(receipt, history) {
    if (this.terms.budget) throw new Error("under a budget a contribution is not changed: take it back, and the budget of one is spent");
    return this.#later({ ...receipt, history: this.#known(history) }, CHANGE, receipt.history);
  }

  prepareTakeOut(receipt) {
    return this.#later(receipt, TAKE_OUT, []);
  }

  // The messages of a receipt that was kept and perhaps not sent to both servers: the same name and key again, so that
  // whatever arrives twice counts once.
  async resume(receipt) {
    if (receipt.agreement !== hex(this.terms.name)) throw new Error("the receipt is of another agreement");
    const { operation, name, key, before } = receipt.pending, now = this.numbers(receipt.history);
    const numbers = operation === ADD ? now : operation === CHANGE ? difference(now, this.numbers(before)) : difference(new Uint32Array(now.length), now);
    const kept = { contribution: bytesOf(receipt.contribution), secret: bytesOf(receipt.secret) };
    return { receipt, messages: await messages(this.terms, numbers, kept, operation, bytesOf(name), { key: bytesOf(key) }) };
  }

  // To a, then to b: whatever ends in between leaves a key without numbers, which is never opened.
  async send({ messages: made, receipt }) {
    for (const share of ["a", "b"]) {
      const headers = this.terms.work ? { ...PLAIN, "ownview-work": await proof(made[share], this.terms.work) } : PLAIN;
      await this.#post(`${this.terms.urls[share]}/v1/messages`, made[share], headers);
    }
    return { ...receipt, out: receipt.out || receipt.pending.operation === TAKE_OUT, pending: null };
  }

  async status() {
    return (await this.fetch(`${this.terms.urls.b}/v1/status`)).json();
  }

  // The weights that were solved last: null, or what a page scores with. The file's name is its SHA-256.
  async weights() {
    const latest = await this.fetch(`${this.terms.urls.b}/v1/weights`);
    if (latest.status === 404) return null;
    const { sha256 } = await latest.json();
    if (!/^[0-9a-f]{64}$/.test(sha256)) throw new Error("the server names no file of weights");
    const content = await (await this.fetch(`${this.terms.urls.b}/v1/weights/${sha256}`)).arrayBuffer();
    if (hex(new Uint8Array(await globalThis.crypto.subtle.digest("SHA-256", content))) !== sha256) throw new Error("the file of weights is damaged");
    const read = JSON.parse(new TextDecoder().decode(content));
    if (read.agreement !== hex(this.terms.name)) throw new Error("the weights are of another agreement");
    return read;
  }

  #later(receipt, operation, before) {
    if (receipt.pending) throw new Error("what was begun with this contribution is not finished: resume it first");
    return this.resume({ ...receipt, pending: { operation, name: hex(random(16)), key: hex(random(32)), before } });
  }

  async #post(url, body, headers) {
    for (let attempt = 1; ; attempt += 1) {
      let answer = null;
      try {
        answer = await this.fetch(url, { method: "POST", body, headers });
      } catch (error) {
        if (attempt > this.retries) throw error;
      }
      if (answer?.ok) return;
      if (answer && answer.status < 500 && answer.status !== 429) {
        const { error } = await answer.json().catch(() => ({}));
        throw Object.assign(new Error(error ?? `status ${answer.status}`), { refused: answer.status === 400 && error !== undefined });
      }
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
}

export { Contributor, readAgreement, withdrawn };
