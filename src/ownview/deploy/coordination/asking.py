"""Asking places: send, wait, send again, and take each answer once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ownview.base.errors import OwnviewError
from ownview.deploy.envelopes.envelope import Envelope, Kind, digest_of, kind_of, line_of
from ownview.deploy.envelopes.notes import read_answer
from ownview.deploy.transport import Transport

Taken = TypeVar("Taken")


@dataclass
class Asked(Generic[Taken]):
    """Answers and refusals to one question.

    Args:
        answers: by place, as they were taken.
        refused: by place, why there is no answer.
        resent: messages that were sent again.
        users: by place, how many users it said it has.
    """

    answers: dict[str, Taken] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    resent: int = 0
    users: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Asking:
    """How places are asked.

    Args:
        transport: that carries messages.
        resend: seconds after which a message that was not answered is sent again.
        say: called with one line for the operator.
    """

    transport: Transport
    resend: float
    say: Callable[[str], None]

    def ask(
        self,
        messages: Mapping[str, bytes],
        take: Callable[[str, Envelope], Taken],
        deadline: float,
        enough: Callable[[Asked[Taken]], bool] = lambda found: True,
    ) -> Asked[Taken]:
        """Ask places until all have answered, or, after the deadline, until it is enough.

        Args:
            messages: by place.
            take: reads an answer; raises `MessageError` where it is not what it should be. Then, as whenever a place
                answers wrongly, the answer is dropped, one line says so, and the place counts as refused.
            deadline: seconds from now.
            enough: whether what there is will do.
        """
        found: Asked[Taken] = Asked()
        asked = {place: (digest_of(message), kind_of(message)) for place, message in messages.items()}
        started = sent = time.monotonic()
        for place, message in messages.items():
            self.transport.send(place, message)
        while len(found.answers) + len(found.refused) < len(messages):
            came = self.transport.receive(self.resend)
            for place, answer in came:
                if place in messages and place not in found.answers and place not in found.refused:
                    self._take(place, answer, *asked[place], take, found)
            now = time.monotonic()
            if now - started >= deadline and enough(found):
                break
            if not came and now - sent >= self.resend:
                sent = now
                for place in (one for one in messages if one not in found.answers and one not in found.refused):
                    self.transport.send(place, messages[place])
                    found.resent += 1
        return found

    def _take(
        self,
        place: str,
        answer: bytes,
        digest: str,
        kind: Kind,
        take: Callable[[str, Envelope], Taken],
        found: Asked[Taken],
    ) -> None:
        try:
            read = read_answer(answer, kind, digest)
            if read is None:
                return
            if read.kind is Kind.REFUSED:
                found.refused[place] = line_of(read.note["why"])
            else:
                found.answers[place] = take(place, read)
                found.users[place] = read.note.get("users", 0)
        except OwnviewError as error:
            found.refused[place] = line_of(f"answered wrongly: {error}")
        except Exception as error:  # reading is bounded by limits; should one be missing, it costs this answer alone
            found.refused[place] = line_of(f"answered wrongly ({type(error).__name__}): {error}")
        if place in found.refused:
            self.say(f"place {place}: {found.refused[place]}")
