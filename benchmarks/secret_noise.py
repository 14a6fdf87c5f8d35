"""CPU-seconds for a million numbers of noise: secret and exact, beside the quantile of SplitMix64's bits.

python -m benchmarks.secret_noise
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from ownview.privacy.entropy import NoiseKey
from ownview.privacy.exact_gaussian import rounded_gaussian
from ownview.privacy.transforms import drawn, gaussian

_NUMBERS = 4_000_000
_TIMES = 3


def seconds(draw: Callable[[], object]) -> float:
    """CPU-seconds for a million numbers, the least of several times: others share the machine."""
    found = []
    for _ in range(_TIMES):
        start = time.process_time()
        draw()
        found.append(time.process_time() - start)
    return min(found) * 1e6 / _NUMBERS


def measured() -> dict[str, float]:
    """By what is drawn; on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        key, client = NoiseKey.fresh(), torch.zeros(1, dtype=torch.long)
        rounded_gaussian(key.stream("tables are made once"), 1, 20)
        like = torch.zeros(1, _NUMBERS)
        return {
            "ChaCha20 alone": seconds(lambda: key.stream("bits").words(2 * _NUMBERS)),
            "secret and exact": seconds(lambda: rounded_gaussian(key.stream("noise"), _NUMBERS, 20)),
            "from a seed, as it was": seconds(lambda: drawn(like, 7, client, gaussian, 1.0)),
        }
    finally:
        torch.set_num_threads(before)


if __name__ == "__main__":
    figures = measured()
    for what, found in figures.items():
        print(f"{found:.3f} CPU-seconds a million numbers: {what}")
    print(f"ratio {figures['secret and exact'] / figures['from a seed, as it was']:.2f}")
