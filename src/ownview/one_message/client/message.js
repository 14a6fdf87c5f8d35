// The bytes of a message and its two shares; docs/one-message.md has every byte.

import { joined, seal } from "./hpke.js";

const subtle = globalThis.crypto.subtle, text = (words) => new TextEncoder().encode(words);
const ADD = 1, CHANGE = 2, TAKE_OUT = 3;
const INFO = text("ownview one message"), EMPTY = new Uint8Array(16);
const random = (bytes) => globalThis.crypto.getRandomValues(new Uint8Array(bytes));
const digest = async (bytes) => new Uint8Array(await subtle.digest("SHA-256", bytes));
const LITTLE = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

// AES-256-CTR of zeros: the stream of a key, as numbers.
async function stream(key, count) {
  const imported = await subtle.importKey("raw", key, "AES-CTR", false, ["encrypt"]);
  return new Uint32Array(await subtle.encrypt({ name: "AES-CTR", counter: EMPTY, length: 64 }, imported, new Uint8Array(4 * count)));
}

// A message to each server: { a, b }. `chance` gives key and key pairs, for test vectors alone.
async function messages(terms, numbers, { contribution, secret }, operation, name, chance = {}) {
  if (!LITTLE) throw new Error("this machine has the highest byte first; expected the lowest");
  const key = chance.key ?? random(32), mask = await stream(key, numbers.length);
  const rest = numbers.map((value, place) => value - mask[place]);
  const proof = operation === ADD ? await digest(secret) : secret;
  const parts = { a: key, b: new Uint8Array(rest.buffer) }, made = {};
  for (const share of ["a", "b"]) {
    const head = joined(text("OVM1"), text(share), Uint8Array.of(operation, 0, 0), terms.name, name, contribution);
    made[share] = joined(head, await seal(terms.keys[share], joined(INFO, head), joined(proof, parts[share]), chance[share] ?? null));
  }
  return made;
}

export { ADD, CHANGE, TAKE_OUT, digest, messages, random, stream };
