"""A filter over places: slow waves of a sequence pass, fast ones are weighed by numbers that are learnt.

Shin, Choi, Wi and Park, "An Attentive Inductive Bias for Sequential Recommendation beyond the Self-Attention" (BSARec),
AAAI 2024. They cut the discrete Fourier transform of the places; the same cut is one matrix product, since the inverse
of the transform after the transform, with some waves left out, depends on how far two places are apart and on nothing
else. So it needs no padding to a fixed length, and does the same wherever the sequence stands among empty places.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def low_pass(length: int, waves: int, like: Tensor, *, back_alone: bool) -> Tensor:
    """[length, length] K, with K x the slowest waves of x [length, d] by place, all places together taken for a period.

    K[s, t] = (1 + sum over k = 1 .. waves - 1 of w_k cos(2 pi k (s - t) / length)) / length, w_k = 2 but for the wave
    of two places, which has 1: what is left of x after its Fourier transform over the places keeps the frequencies 0 to
    waves - 1. A shorter sequence takes the corner [W, W]: then its other places are 0.

    Args:
        length: places in a period.
        waves: how many frequencies pass, 0 among them; from length // 2 + 1 on all do, and K is the identity.
        like: has the type and device of K.
        back_alone: whether a place sees those up to it alone; its row is that of the sequence that ends there.
    """
    place = torch.arange(length, device=like.device)
    wave = torch.arange(min(waves, length // 2 + 1), device=like.device)
    apart = (place[:, None] - place)[..., None] * wave % length  # in whole numbers, so that no digit is lost
    alone = (wave == 0) | (2 * wave == length)
    cosines = torch.cos(apart.double() * (2 * math.pi / length)) * torch.where(alone, 1.0, 2.0)
    kernel = (cosines.sum(-1) / length).to(like.dtype)
    return kernel.tril() if back_alone else kernel


def filtered(x: Tensor, kernel: Tensor, root: Tensor) -> Tensor:
    """[W, d] low + root^2 (x - low), low = K x.

    Args:
        x: [W, d], 0 at places of padding.
        kernel: [length, length] K, length at least W.
        root: [d] the square root of what the fast waves are weighed by.
    """
    low = kernel[: len(x), : len(x)] @ x
    return low + root.square() * (x - low)
