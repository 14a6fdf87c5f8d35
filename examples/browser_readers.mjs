// Readers without a head: each works out the numbers of a history, seals two shares and sends them, as a tab would.
// { url, expected, readers: [{ history, does }] } on stdin; does: "sends", "leaves" (after the first share), "takes back".
import { readFileSync } from "node:fs";
import { Contributor } from "../src/ownview/one_message/client/index.js";

const { url, expected, readers } = JSON.parse(readFileSync(0, "utf8"));
const contributor = await Contributor.join(url, { expected });

for (const { history, does } of readers) {
  const ready = await contributor.prepare(history);
  if (does === "leaves") await contributor.fetch(`${contributor.terms.urls.a}/v1/messages`, { method: "POST", body: ready.messages.a });
  else {
    const receipt = await contributor.send(ready);
    if (does === "takes back") await contributor.send(await contributor.prepareTakeOut(receipt));
  }
}
