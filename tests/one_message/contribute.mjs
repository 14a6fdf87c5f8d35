// Contributors in Node: { url, expected, people: [{ history, fate, later }] } on stdin; what each ended with on stdout.
// Fates: plain; twice (the same messages again); closed (gone in mid-send to b); unsent (gone before b); back (taken out);
// update (another history, later).
import { request } from "node:http";
import { readFileSync } from "node:fs";

const { Contributor } = await import(`${process.argv[2]}/index.js`);
const { url, expected, people, atOnce = 8, retries = 12 } = JSON.parse(readFileSync(0, "utf8"));
const contributor = await Contributor.join(url, { expected, retries });

// Half of a body, and then the tab is gone.
function brokenOff(address, body) {
  return new Promise((resolve) => {
    const asked = request(address, { method: "POST", headers: { "content-length": body.length } });
    asked.on("error", resolve);
    asked.write(body.subarray(0, body.length >> 1), () => setTimeout(() => asked.destroy(), 20));
  });
}

async function take({ history, fate, later }) {
  const ready = await contributor.prepare(history), { urls } = contributor.terms;
  if (fate === "closed" || fate === "unsent") {
    await contributor.fetch(`${urls.a}/v1/messages`, { method: "POST", body: ready.messages.a }).catch(() => null);
    if (fate === "closed") await brokenOff(`${urls.b}/v1/messages`, ready.messages.b);
    return;
  }
  const receipt = await contributor.send(ready);
  if (fate === "twice") await contributor.send(await contributor.resume(ready.receipt));
  if (fate === "back") await contributor.send(await contributor.prepareTakeOut(receipt));
  if (fate === "update") await contributor.send(await contributor.prepareChange(receipt, later));
}

const begun = performance.now(), waiting = [...people], failed = [];
await Promise.all(Array.from({ length: atOnce }, async () => {
  for (let one = waiting.shift(); one; one = waiting.shift()) {
    try { await take(one); } catch (error) { failed.push(String(error)); }
  }
}));
console.log(JSON.stringify({ failed, milliseconds: performance.now() - begun }));
