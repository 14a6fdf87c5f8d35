// Sealing to a public key: HPKE, RFC 9180, base mode, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM, one message a key.

const subtle = globalThis.crypto.subtle;
const text = (words) => new TextEncoder().encode(words);
const short = (value) => Uint8Array.of(value >> 8, value & 255);
const KEM = [text("KEM"), short(0x0020)], SUITE = [text("HPKE"), short(0x0020), short(0x0001), short(0x0002)];

function joined(...parts) {
  const made = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) { made.set(part, at); at += part.length; }
  return made;
}

async function hmac(key, data) {
  const imported = await subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await subtle.sign("HMAC", imported, data));
}

const NOTHING = new Uint8Array(0), ZEROS = new Uint8Array(32); // an empty salt is as many zeros as the hash has bytes
const extract = (suite, salt, label, secret) => hmac(salt.length ? salt : ZEROS, joined(text("HPKE-v1"), ...suite, text(label), secret));
const expand = async (suite, secret, label, info, size) =>
  (await hmac(secret, joined(short(size), text("HPKE-v1"), ...suite, text(label), info, Uint8Array.of(1)))).slice(0, size);

async function pair() {
  try {
    return await subtle.generateKey({ name: "X25519" }, true, ["deriveBits"]);
  } catch {
    throw new Error("this browser has no X25519 in WebCrypto; Chromium 133, Firefox 130, Safari 17 and Node 20 have it");
  }
}

// enc [32] and the ciphertext, for a public key [32]. `own` is a key pair for test vectors alone.
async function seal(publicKey, info, plain, own = null) {
  const mine = own ?? await pair();
  const enc = new Uint8Array(await subtle.exportKey("raw", mine.publicKey));
  const theirs = await subtle.importKey("raw", publicKey, { name: "X25519" }, false, []);
  const shared = new Uint8Array(await subtle.deriveBits({ name: "X25519", public: theirs }, mine.privateKey, 256));
  const eae = await extract(KEM, NOTHING, "eae_prk", shared);
  const secret = await expand(KEM, eae, "shared_secret", joined(enc, publicKey), 32);
  const context = joined(Uint8Array.of(0), await extract(SUITE, NOTHING, "psk_id_hash", NOTHING), await extract(SUITE, NOTHING, "info_hash", info));
  const schedule = await extract(SUITE, secret, "secret", NOTHING);
  const key = await subtle.importKey("raw", await expand(SUITE, schedule, "key", context, 32), "AES-GCM", false, ["encrypt"]);
  const iv = await expand(SUITE, schedule, "base_nonce", context, 12);
  return joined(enc, new Uint8Array(await subtle.encrypt({ name: "AES-GCM", iv }, key, plain)));
}

export { joined, seal };
