"""What one message costs: bytes, CPU of a client in Node, and CPU of the two servers for a contribution.

    python -m benchmarks.one_message                # FedEASE's pairs of 364, 2,000 and 10,000 items

Histories have 80 different items. CPU-seconds, so that other work on the machine hardly matters: of the client for its
numbers, shares and seals; of server a to read a message, and to make its stream when the batch is opened; of server b
to read and keep a message, to add it when it is confirmed, and its part of opening the batch. HTTP is not in it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ownview.one_message.envelope import Operation, Receipt, opened, sealed
from ownview.one_message.numbers import summand
from ownview.one_message.store import ShareStore
from ownview.one_message.terms import Share, agreed

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "ownview" / "one_message" / "client"
CLIENT = """
const { readAgreement, Contributor } = await import(process.argv[1] + "/index.js");
const { readFileSync } = await import("node:fs");
const contributor = new Contributor(await readAgreement(readFileSync(process.argv[2])));
const history = JSON.parse(process.argv[3]), count = Number(process.argv[4]);
await contributor.prepare(history);
const before = process.cpuUsage(), begun = performance.now();
for (let k = 0; k < count; k += 1) await contributor.prepare(history);
const used = process.cpuUsage(before);
console.log(JSON.stringify([(used.user + used.system) / 1e3 / count, (performance.now() - begun) / count]));
"""


def cpu(work: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds of CPU, and what came out."""
    begun = time.process_time()
    made = work()
    return 1e3 * (time.process_time() - begun), made


def measured(items: int, count: int) -> dict[str, Any]:
    """One number of items, means over so many contributions."""
    private = {share: X25519PrivateKey.generate() for share in ("a", "b")}
    keys: dict[Share, bytes] = {share: private[share].public_key().public_bytes_raw() for share in ("a", "b")}
    terms = agreed("fedease", [str(k) for k in range(items)], {"a": "http://a", "b": "http://b"}, keys, fewest=count)
    history = random.Random(0).sample(range(items), 80)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agreement.json"
        path.write_bytes(terms.content)
        line = ["node", "--input-type=module", "-e", CLIENT, str(PACKAGE), str(path), json.dumps(history), str(count)]
        client = json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
        stores = {share: ShareStore(Path(folder) / share, terms, share) for share in terms.keys}
        spent = dict.fromkeys(("a_reads", "b_reads"), 0.0)
        for _ in range(count):
            sent, _ = sealed(terms, summand(terms, history), Receipt.new(), Operation.ADD)
            for share, store in stores.items():
                took, _ = cpu(lambda: store.put(opened(terms, share, private[share], sent[share])))  # noqa: B023
                spent[f"{share}_reads"] += took / count
        confirmed, _ = cpu(lambda: stores["b"].confirm(stores["a"].known))
        names = [row[0] for row in stores["b"]._rows("SELECT name FROM messages ORDER BY name")]
        streamed, batch = cpu(lambda: stores["a"].batch(names).read_bytes())
        done, number = cpu(lambda: stores["b"].open(lambda _: batch))
        assert number == count
        assert (stores["b"].total() == count * summand(terms, history).astype(int)).all()
        for store in stores.values():
            store.close()
        return {
            "items": items, "bytes_a": len(sent["a"]), "bytes_b": len(sent["b"]), "client_cpu_ms": round(client[0], 1),
            "client_wall_ms": round(client[1], 1), "a_cpu_ms": round(spent["a_reads"] + streamed / count, 1),
            "b_cpu_ms": round(spent["b_reads"] + (confirmed + done) / count, 1), "load": round(os.getloadavg()[0], 1),
        }  # fmt: skip


def main() -> None:
    """Print one JSON object a number of items."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, nargs="*", default=[364, 2000, 10_000])
    given = parser.parse_args()
    for items in given.items:
        print(json.dumps(measured(items, 20 if items <= 2000 else 4)), flush=True)


if __name__ == "__main__":
    main()
