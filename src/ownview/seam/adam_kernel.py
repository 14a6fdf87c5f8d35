"""Adam for a stack of clients on a GPU in one pass over memory: every client has taken its own number of steps.

PyTorch's fused Adam knows one number of steps a tensor, so a stack of clients that are through at different times would
need a launch for every few of them. Where Triton is not at hand or cannot compile, `works` says so, and PyTorch's is
taken.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # on systems without a GPU
    triton = None

_FEW, _MANY = 128, 1024
"""Numbers that one program moves: of a client's vector, and of its table."""

_ALIGNED = 16
"""Triton has a kernel of its own for tensors that begin at a multiple of so many bytes."""


@functools.cache
def constants(rate: float, beta1: float, beta2: float, epsilon: float, device: torch.device) -> Tensor:
    """[6] what the kernel knows of the rule, in double precision: these four, and the logarithms of both betas."""
    numbers = [rate, beta1, beta2, epsilon, math.log(beta1), math.log(beta2)]
    return torch.tensor(numbers, dtype=torch.float64, device=device)


def move(values: Tensor, grads: Tensor, firsts: Tensor, seconds: Tensor, steps: Tensor, rule: Tensor) -> None:
    """Take one step in place with the clients that have gradients.

    Args:
        values: [B, ...] contiguous.
        grads: [A, ...] of the first A clients.
        firsts: [B, ...] running means of gradients.
        seconds: [B, ...] running means of their squares.
        steps: [B] steps of each client, this one included.
        rule: from `constants`.
    """
    clients = len(grads)
    width = grads.numel() // max(clients, 1)
    if not clients or not width:
        return
    block = _FEW if width <= _FEW else _MANY
    parts = -(-width // block)
    grads = grads.contiguous()
    if grads.data_ptr() % _ALIGNED:  # else a recording would have to compile another kernel
        grads = grads.clone()
    kernel: Any = _moved
    kernel[(clients * parts,)](values, grads, firsts, seconds, steps, rule, width, parts, block)


@functools.cache
def works(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the kernel compiles and runs here; tried once a process, so that no recording has to compile it."""
    if triton is None:
        return False
    try:
        for block in (_FEW, _MANY):
            stack = [torch.zeros(2, block, dtype=dtype, device=device) for _ in range(4)]
            steps = torch.ones(2, dtype=torch.float64, device=device)
            move(stack[0], stack[1], stack[2], stack[3], steps, constants(0.1, 0.9, 0.999, 1e-8, device))
        torch.cuda.synchronize(device)
    except Exception:  # no compiler at hand, or a device that Triton does not know: PyTorch's Adam does it
        return False
    return True


if triton is not None:

    @triton.jit(do_not_specialize=["width", "parts"])  # type: ignore[untyped-decorator]
    def _moved(  # type: ignore[no-untyped-def]  # noqa: ANN202 - Triton takes no other annotations than its own
        values, grads, firsts, seconds, steps, rule, width, parts,  # noqa: ANN001
        block: tl.constexpr,
    ):  # fmt: skip
        program = tl.program_id(0)
        client = program // parts
        inside = (program % parts) * block + tl.arange(0, block)
        here = inside < width
        at = client.to(tl.int64) * width + inside
        value = tl.load(values + at, mask=here, other=0.0)
        kind = value.dtype
        grad = tl.load(grads + at, mask=here, other=0.0)
        count = tl.load(steps + client)
        rate, beta1, beta2 = tl.load(rule), tl.load(rule + 1), tl.load(rule + 2)
        epsilon, log1, log2 = tl.load(rule + 3), tl.load(rule + 4), tl.load(rule + 5)
        size = (rate / (1.0 - tl.exp(count * log1))).to(kind)
        root = tl.sqrt(1.0 - tl.exp(count * log2)).to(kind)
        first = tl.load(firsts + at, mask=here, other=0.0)
        second = tl.load(seconds + at, mask=here, other=0.0)
        first = first * beta1.to(kind) + grad * (1.0 - beta1).to(kind)
        second = second * beta2.to(kind) + grad * grad * (1.0 - beta2).to(kind)
        value = value - size * first / (tl.sqrt(second) / root + epsilon.to(kind))
        tl.store(values + at, value, mask=here)
        tl.store(firsts + at, first, mask=here)
        tl.store(seconds + at, second, mask=here)
