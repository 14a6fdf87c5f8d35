"""The picture of what would be sent, for people who have imported a long history."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from ownview.one_message.terms import agreed
from tests.one_message.federations import PACKAGE

SCRIPT = """
const { Contributor, readAgreement } = await import(process.argv[1] + "/index.js");
const { readFileSync } = await import("node:fs");
const { agreement, history } = JSON.parse(readFileSync(0, "utf8"));
const made = new Contributor(await readAgreement(new TextEncoder().encode(agreement))).picture(history);
console.log(JSON.stringify({ items: made.items.length, most: made.cells.flat().reduce((a, b) => Math.max(a, b), 0) }));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_it_is_drawn_for_hundreds_of_items() -> None:
    items = [f"item {number}" for number in range(450)]
    terms = agreed("fedease", items, {"a": "http://a", "b": "http://b"}, {"a": bytes(32), "b": bytes(32)})
    given = json.dumps({"agreement": terms.content.decode(), "history": items})
    line = ["node", "--input-type=module", "-e", SCRIPT, str(PACKAGE)]
    said = subprocess.run(line, input=given, capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == {"items": 450, "most": 1}
