"""How well posed are the equations that a method solves? Rounding grows by that much on its way through them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_SOLVES = (torch.linalg.solve, torch.linalg.inv, torch.linalg.cholesky_ex)


class Conditions(TorchFunctionMode):
    """A context that notes the largest condition number of any system solved inside it; 1 where none is."""

    def __init__(self) -> None:
        super().__init__()
        self.worst = 1.0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Look at what is solved, and let it pass. Inside a map over clients no single number can be read."""
        if func in _SOLVES and not torch._C._functorch.is_batchedtensor(args[0]):
            self.worst = max(self.worst, float(torch.linalg.cond(args[0].detach().double()).max()))
        return func(*args, **(kwargs or {}))
