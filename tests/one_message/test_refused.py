"""A refused message leaves the receipt as it was: no person is stuck with one that cannot be finished."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography.hazmat.primitives.hpke")

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ownview.one_message import app
from ownview.one_message.terms import Share, agreed

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
PACKAGE = Path(app.__file__).parent / "client"
SCRIPT = """
const { readFileSync } = await import("node:fs");
const { Contributor, readAgreement, withdrawn } = await import(`${process.argv[1]}/index.js`);
const terms = await readAgreement(readFileSync(process.argv[2]));
const answers = { fine: () => Response.json({ new: true }),
  refuses: () => Response.json({ error: "left out" }, { status: 400 }),
  proxy: () => new Response("<html>", { status: 400 }), busy: () => new Response("", { status: 503 }) };
let b = "fine";
const fetch = async (url) => answers[url.startsWith("http://b") ? b : "fine"]();
const contributor = new Contributor(terms, { fetch, retries: 0 });
const refused = (ready) => contributor.send(ready).then(() => null, (error) => error.refused ?? false);
const receipt = await contributor.send(await contributor.prepare(["1", "2"]));
const made = { receipt };
for (b of ["refuses", "proxy", "busy"]) {
  const adding = await contributor.prepare(["1", "2"]), changing = await contributor.prepareChange(receipt, ["3"]);
  const back = await contributor.prepareTakeOut(receipt);
  made[b] = { refused: [await refused(adding), await refused(changing), await refused(back)],
    after: [adding, changing, back].map((one) => withdrawn(one.receipt)) };
}
console.log(JSON.stringify(made));
"""


def test_a_refused_message_leaves_the_receipt_as_it_was(tmp_path: Path) -> None:
    key = X25519PrivateKey.generate().public_key().public_bytes_raw()
    keys: dict[Share, bytes] = {"a": key, "b": key}
    terms = agreed("fedease", ["1", "2", "3"], {"a": "http://a", "b": "http://b"}, keys)
    (tmp_path / "agreement.json").write_bytes(terms.content)
    line = ["node", "--input-type=module", "-e", SCRIPT, str(PACKAGE), str(tmp_path / "agreement.json")]
    made: dict[str, Any] = json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
    before = made["receipt"]
    assert before["history"] == ["1", "2"]
    assert made["refuses"] == {"refused": [True] * 3, "after": [None, before, before]}
    # What a proxy or an outage answers is no refusal: the message may have arrived, and is finished later.
    assert made["proxy"]["refused"] == [False] * 3
    assert made["busy"]["refused"] == [False] * 3
