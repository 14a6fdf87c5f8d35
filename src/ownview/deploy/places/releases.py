"""What a place has released of its users under a budget: how often, and how much of it is spent.

Only what is under an accounted budget is noted. A message that comes again is answered the same again, and counts once.
A second question of the same round (after an uncounted one) is answered with other noise, and is charged too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from ownview.base.errors import MessageError
from ownview.base.files import append_line, write_bytes
from ownview.deploy.agreement import Agreement
from ownview.deploy.places.home import RELEASES, Home
from ownview.federation.terms import Terms
from ownview.privacy.accountant import epsilon_of
from ownview.privacy.planning import accounted_rounds
from ownview.seam.client import Reporting


class Releases:
    """Releases of a place's users.

    Args:
        home: of the place.
        agreement: that the budget is part of.
        terms: that follow from it.
    """

    def __init__(self, home: Home, agreement: Agreement, terms: Terms) -> None:
        self.home, self.agreement, self.terms = home, agreement, terms
        self.plan = terms.world.protection
        self.file, self.frozen = home.state / RELEASES, home.state / "frozen.csv"
        self.frozen_users = home.state / "frozen_users.csv"
        self.made: dict[str, dict[str, int]] = {}
        for line in self.file.read_text(encoding="utf-8").splitlines() if self.file.is_file() else ():
            try:
                one = json.loads(line)
            except ValueError:  # a kill cut it short; what it was about never left
                continue
            self._add(one["users"], one["mark"], one["round"])

    def ratings(self) -> Path:
        """Training data: frozen once a sum of it has left under a budget for sums.

        The rounds of such a budget look at the same ratings. New ones wait for the next.
        """
        return self.frozen if self.frozen.is_file() else self.home.ratings

    def users(self) -> Path:
        """What is known of the users, frozen with the ratings."""
        return self.frozen_users if self.frozen.is_file() else self.home.users

    def begin(self) -> None:
        """Keep ratings and users as they are, where all releases must be made of the same."""
        if self.plan is not None and isinstance(self.terms.client.work, Reporting) and not self.frozen.is_file():
            if self.home.users.is_file():
                write_bytes(self.frozen_users, self.home.users.read_bytes(), private=True)
            write_bytes(self.frozen, self.home.ratings.read_bytes(), private=True)

    def mark(self, message: str) -> str:
        """Identity of a release: digest of the question and of what it is made of."""
        known = self.users().read_bytes() if self.agreement.user_columns else b""
        return blake2b(message.encode() + self.ratings().read_bytes() + known, digest_size=16).hexdigest()

    def note(self, number: int, users: Sequence[str], mark: str) -> None:
        """Write down, before it leaves, that these users release something in a round.

        Raises:
            MessageError: one of them has released as often as the budget allows.
        """
        if self.plan is None:
            return
        model, world = self.agreement.model, self.terms.world
        allowed, _ = accounted_rounds(self.plan, self.terms.options, world.num_clients, model.releases)
        for user in users:
            made = self.made.get(user, {})
            if mark not in made and len(made) >= allowed:
                raise MessageError(
                    f"a user has sent {len(made)} times, which is all that epsilon {self.plan.epsilon:g} allows; "
                    "nothing leaves any more"
                )
        if any(mark not in self.made.get(user, {}) for user in users):
            append_line(self.file, json.dumps({"round": number, "mark": mark, "users": list(users)}), private=True)
            self._add(users, mark, number)

    def epsilon(self, user: str) -> float | None:
        """Epsilon spent by a user so far; None without a budget."""
        if self.plan is None:
            return None
        rounds = list(self.made.get(user, {}).values())
        if not rounds:
            return 0.0
        world = self.terms.world
        _, sampling = accounted_rounds(self.plan, self.terms.options, world.num_clients, self.agreement.model.releases)
        return epsilon_of([self.plan.noise[number - 1] for number in rounds], self.plan.delta, sampling)

    def _add(self, users: Sequence[str], mark: str, number: int) -> None:
        for user in users:
            self.made.setdefault(user, {})[mark] = number
