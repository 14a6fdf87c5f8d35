// An agreement as a client reads it: everything that numbers depend on is a whole number in it.

import { digest } from "./message.js";

const METHODS = ["fedease", "counts", "fednext"], MOST_ITEMS = 20000, KEY = 32;
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const bytesOf = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
const fromBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const whole = (values) => Array.isArray(values) && values.every((one) => Number.isInteger(one) && one >= 0 && one < 2 ** 24);

function require(true_, what) {
  if (!true_) throw new Error(`agreement: ${what} is not as docs/one-message.md says; this client reads format 1 and ${METHODS.join(", ")}`);
}

async function readAgreement(content) {
  const terms = JSON.parse(new TextDecoder().decode(content));
  require(terms?.format === 1, "format");
  require(METHODS.includes(terms.method), "method");
  const { items, table = [], next = null, budget = null, work = 0, servers } = terms;
  require(Array.isArray(items) && items.length > 0 && items.length <= MOST_ITEMS && new Set(items).size === items.length, "items");
  require(items.every((item) => typeof item === "string"), "items");
  require(whole(table) && (terms.method === "fedease") === table.length > 0, "table");
  require((terms.method === "fednext") === (next !== null), "next");
  require(next === null || (whole(next.future) && whole(next.weights) && next.past.every(whole)), "next");
  require(Number.isInteger(terms.fewest) && terms.fewest > 0, "fewest");
  require(Number.isInteger(work) && work >= 0 && work <= 30, "work");
  require(budget === null || (Number.isInteger(budget.clip) && budget.clip > 0), "budget");
  const of = (read) => Object.fromEntries(["a", "b"].map((share) => [share, read(servers[share])]));
  const keys = of((one) => fromBase64(one.key)), urls = of((one) => one.url.replace(/\/+$/, ""));
  require(keys.a.length === KEY && keys.b.length === KEY, "servers");
  if (next?.vectors) next.vectors = new Int16Array(fromBase64(next.vectors).buffer);
  return { ...terms, table, next, budget, work, keys, urls, name: await digest(content), place: new Map(items.map((item, place) => [item, place])) };
}

export { bytesOf, hex, readAgreement };
