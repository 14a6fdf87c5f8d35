// A contributor in a Web Worker: { id, call, given } comes in, { id, result } or { id, error } goes out. Nothing is sent
// to a server but by `status`, `weights` and the calls that send.

import { hex } from "./agreement.js";
import { Contributor, readAgreement, withdrawn } from "./contributor.js";
import { Home } from "./home.js";
import { matched, readExport } from "./imports.js";

let contributor = null, home = null;

const receiptOf = async (contribution) => (await home.receipts()).find((one) => one.contribution === contribution);

async function sent(ready) {
  await home.keepReceipt(ready.receipt);
  try {
    const settled = await contributor.send(ready);
    await home.keepReceipt(settled);
    return settled;
  } catch (error) {
    if (error.refused) {
      const before = withdrawn(ready.receipt);
      await (before ? home.keepReceipt(before) : home.dropReceipt(ready.receipt));
    }
    throw error;
  }
}

const calls = {
  async begin(agreement) {
    const terms = await readAgreement(new TextEncoder().encode(agreement)), name = hex(terms.name);
    contributor = new Contributor(terms);
    home = await Home.open(`ownview ${name.slice(0, 16)}`);
    const { method, items, fewest, budget, urls } = terms;
    return { name, method, items, fewest, budget, urls };
  },
  picture: (history) => contributor.picture(history),
  receipts: async () => (await home.receipts()).sort((one, other) => (one.sent < other.sent ? 1 : -1)),
  history: () => home.history(),
  keepHistory: (items) => home.keepHistory(items),
  imported: (text, titles) => matched(readExport(text), titles),
  status: () => contributor.status(),
  weights: () => contributor.weights(),
  sendOnce: async (history) => sent(await contributor.prepare(history)),
  sendChange: async (contribution, history) => sent(await contributor.prepareChange(await receiptOf(contribution), history)),
  takeBack: async (contribution) => sent(await contributor.prepareTakeOut(await receiptOf(contribution))),
  finish: async (contribution) => sent(await contributor.resume(await receiptOf(contribution))),
};

globalThis.onmessage = async ({ data: { id, call, given } }) => {
  try {
    globalThis.postMessage({ id, result: await calls[call](...given) });
  } catch (error) {
    globalThis.postMessage({ id, error: error.message });
  }
};
