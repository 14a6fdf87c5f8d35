"""One step of Adam in place, by PyTorch's fused kernel: what central models and clients of an engine share."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.optim.adam import adam


def fused_adam_(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    moments: tuple[Sequence[Tensor], Sequence[Tensor]],
    steps: Sequence[Tensor],
    *,
    rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
) -> None:
    """Adam (Kingma and Ba 2015) with bias correction, without weight decay.

    Args:
        params: moved in place.
        grads: one a parameter, of its shape; made contiguous, as the kernel walks through memory.
        moments: running means of gradients and of their squares, one a parameter each; changed in place.
        steps: number of steps so far, a scalar a parameter; counted up in place.
        rate: the learning rate.
        beta1: of the first moments.
        beta2: of the second.
        epsilon: added to the root of the second.
    """
    adam(
        list(params),
        [grad.contiguous() for grad in grads],
        list(moments[0]),
        list(moments[1]),
        [],
        list(steps),
        fused=True,
        amsgrad=False,
        beta1=beta1,
        beta2=beta2,
        lr=rate,
        weight_decay=0.0,
        eps=epsilon,
        maximize=False,
    )
