// Makes the messages of vectors.json again, with its fixed keys: { numbers: [[place, value], ...], a, b } of every case.
import { readFileSync } from "node:fs";

const [folder, path] = process.argv.slice(2);
const { readAgreement, summand } = await import(`${folder}/index.js`);
const { messages } = await import(`${folder}/message.js`);
const { difference } = await import(`${folder}/numbers.js`);
const given = JSON.parse(readFileSync(path, "utf8"));
const hex = (bytes) => Buffer.from(bytes).toString("hex"), bytes = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const base64url = (text) => Buffer.from(text, "hex").toString("base64url");

async function pair({ secret, open }) {
  const jwk = { kty: "OKP", crv: "X25519", x: base64url(open) }, how = [{ name: "X25519" }, true];
  return {
    publicKey: await crypto.subtle.importKey("jwk", jwk, ...how, []),
    privateKey: await crypto.subtle.importKey("jwk", { ...jwk, d: base64url(secret) }, ...how, ["deriveBits"]),
  };
}

const made = [];
for (const one of given.cases) {
  const terms = await readAgreement(new TextEncoder().encode(given.agreements[one.agreement]));
  const now = summand(terms, one.history), numbers = one.before ? difference(now, summand(terms, one.before)) : now;
  const chance = { key: bytes(one.key), a: await pair(one.ephemeral.a), b: await pair(one.ephemeral.b) };
  const receipt = { contribution: bytes(one.contribution), secret: bytes(one.secret) };
  const sent = await messages(terms, numbers, receipt, one.operation, bytes(one.name), chance);
  made.push({ numbers: [...numbers].map((value, place) => [place, value]).filter(([, value]) => value), a: hex(sent.a), b: hex(sent.b) });
}
console.log(JSON.stringify(made));
