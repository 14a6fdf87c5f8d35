"""Merging a client's own table with the one it received, worked out with plain arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.methods.golden import ITEMS, AdamByHand, Matrix, Vector, dot, sigmoid, uneven_errors

SIZE, HIDDEN, RHO = 2, 2, 0.3


@dataclass
class Adapter:
    """rho_i = sigmoid(w1 . relu(x_i W0 + b0) + b1) with x_i = [q_g - q_l, q_l]; for `dm` only b1 is used."""

    w0: Matrix = field(default_factory=list)
    b0: Vector = field(default_factory=list)
    w1: Vector = field(default_factory=list)
    b1: float = 0.0

    def hidden(self, x: Vector) -> Vector:
        sums = [sum(x[a] * self.w0[a][k] for a in range(2 * SIZE)) + self.b0[k] for k in range(HIDDEN)]
        return [max(one, 0.0) for one in sums]


@dataclass
class Tables:
    """One client's own table and the one it received, with what makes the weights of the latter."""

    own: Matrix
    received: Matrix
    adapter: Adapter

    def apart(self, i: int) -> Vector:
        return [self.received[i][j] - self.own[i][j] for j in range(SIZE)]

    def rho(self, i: int, variant: str) -> float:
        if variant == "em":
            hidden = self.adapter.hidden([*self.apart(i), *self.own[i]])
            return sigmoid(dot(hidden, self.adapter.w1) + self.adapter.b1)
        return {"dm": sigmoid(self.adapter.b1), "sm": RHO, "sr": 1.0}[variant]

    def merged(self, variant: str) -> Matrix:
        rhos = [self.rho(i, variant) for i in range(ITEMS)]
        return [[self.own[i][j] + rhos[i] * self.apart(i)[j] for j in range(SIZE)] for i in range(ITEMS)]


def train_adapter(
    number: int, tables: Tables, direction: Vector, offset: float, variant: str, epochs: int, rate: float
) -> None:
    """By Adam on scores direction . q_i + offset: back through the logistic function, and for `em` the hidden layer."""
    adapter = tables.adapter
    moments = {key: AdamByHand() for key in [*((a, k) for a in range(2 * SIZE) for k in range(HIDDEN)), "b1"]}
    moments |= {(name, k): AdamByHand() for name in ("b0", "w1") for k in range(HIDDEN)}
    for _ in range(epochs):
        errors = uneven_errors(number, [dot(direction, row) + offset for row in tables.merged(variant)])
        rhos = [tables.rho(i, variant) for i in range(ITEMS)]
        # d loss / d (what the logistic function is taken of), item by item
        before = [errors[i] * dot(direction, tables.apart(i)) * rhos[i] * (1 - rhos[i]) for i in range(ITEMS)]
        if variant == "em":
            inputs = [[*tables.apart(i), *tables.own[i]] for i in range(ITEMS)]
            hidden = [adapter.hidden(x) for x in inputs]
            back = [[before[i] * adapter.w1[k] * (hidden[i][k] > 0) for k in range(HIDDEN)] for i in range(ITEMS)]
            for k in range(HIDDEN):
                slope = sum(before[i] * hidden[i][k] for i in range(ITEMS))
                adapter.w1[k] = moments["w1", k].move(adapter.w1[k], slope, rate)
                slope = sum(back[i][k] for i in range(ITEMS))
                adapter.b0[k] = moments["b0", k].move(adapter.b0[k], slope, rate)
                for a in range(2 * SIZE):
                    slope = sum(inputs[i][a] * back[i][k] for i in range(ITEMS))
                    adapter.w0[a][k] = moments[a, k].move(adapter.w0[a][k], slope, rate)
        adapter.b1 = moments["b1"].move(adapter.b1, sum(before), rate)


def train_user_and_table(number: int, user: Vector, own: Matrix, epochs: int, rate: float) -> None:
    """Scores user . q_i; both move together by Adam, in place."""
    moments = {(i, j): AdamByHand() for i in range(-1, ITEMS) for j in range(SIZE)}
    for _ in range(epochs):
        errors = uneven_errors(number, [dot(user, row) for row in own])
        for_user = [sum(errors[i] * own[i][j] for i in range(ITEMS)) for j in range(SIZE)]
        for i in range(ITEMS):
            own[i] = [moments[i, j].move(own[i][j], errors[i] * user[j], rate) for j in range(SIZE)]
        user[:] = [moments[-1, j].move(user[j], for_user[j], rate) for j in range(SIZE)]


def adapter_of(seen: dict[str, list[Any]], client: int, variant: str) -> Adapter:
    """As the client has it in `seen`, everything clients see by name."""
    if variant == "dm":
        return Adapter(b1=seen["adapter"][client])
    if variant != "em":
        return Adapter()
    last = [row[0] for row in seen["adapter1"][client]]
    return Adapter(seen["adapter0"][client], seen["adapter_bias0"][client], last, seen["adapter_bias1"][client][0])


def adapters_by_name(adapters: list[Adapter], variant: str) -> dict[str, list[Any]]:
    """The other way round."""
    if variant == "dm":
        return {"adapter": [one.b1 for one in adapters]}
    if variant != "em":
        return {}
    return {
        "adapter0": [one.w0 for one in adapters],
        "adapter_bias0": [one.b0 for one in adapters],
        "adapter1": [[[weight] for weight in one.w1] for one in adapters],
        "adapter_bias1": [[one.b1] for one in adapters],
    }
