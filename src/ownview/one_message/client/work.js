// Proof of work: a number whose SHA-256 behind a message's head begins with so many zero bits. It costs the sender
// many messages time, and says nothing of who sends.

import { digest } from "./message.js";

const HEAD = 72;

function zeroBits(hash) {
  const first = hash.findIndex((byte) => byte !== 0);
  return first < 0 ? 8 * hash.length : 8 * first + Math.clz32(hash[first]) - 24;
}

// In hexadecimal, 16 digits; bits of 16 take about 65,000 hashes.
async function proof(message, bits) {
  const tried = new Uint8Array(HEAD + 8), number = new DataView(tried.buffer, HEAD);
  tried.set(message.subarray(0, HEAD));
  for (let count = 0; ; count += 1) {
    number.setUint32(0, Math.floor(count / 2 ** 32));
    number.setUint32(4, count % 2 ** 32);
    if (zeroBits(await digest(tried)) >= bits) return Array.from(tried.subarray(HEAD), (byte) => byte.toString(16).padStart(2, "0")).join("");
  }
}

export { proof };
