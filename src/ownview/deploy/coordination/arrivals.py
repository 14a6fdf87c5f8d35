"""Uploads that have arrived: each is read once to see that it is sound, and stays as the bytes it came in.

Some forms of a table are far shorter than the table. Were the uploads of a place kept as they are read, a short answer
could take all memory; so they are read again, one after the other, when they are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ownview.base.errors import MessageError
from ownview.deploy.envelopes.envelope import Envelope
from ownview.messages.codec import Codec
from ownview.messages.upload import Upload


@dataclass(frozen=True)
class Arrival:
    """One user's upload.

    Args:
        identity: of the user.
        data: as it came.
        norm: Euclidean norm of all that is in it.
    """

    identity: int
    data: bytes
    norm: float


def arrivals(
    codec: Codec, identities: Sequence[int], answer: Envelope, refusals: Callable[[Upload], Mapping[int, str]]
) -> list[Arrival]:
    """A place's uploads, all of which must be sound; whose they are follows from who was asked.

    Args:
        codec: of the method.
        identities: that were asked, in the order of the answer's parts.
        answer: of the place; users without anything to send have an empty part.
        refusals: by client, why an upload is not counted.
    """
    if len(answer.parts) != len(identities):
        raise MessageError(f"{len(answer.parts)} uploads of {len(identities)} users")
    found = []
    for identity, part in zip(identities, answer.parts, strict=True):
        if part:
            upload = codec.read_upload(part, identity)
            for why in refusals(upload).values():
                raise MessageError(why)
            found.append(Arrival(identity, part, float(upload.norms()[0])))
    return found


def in_order(codec: Codec, arrived: Sequence[Arrival]) -> Iterator[Upload]:
    """Uploads by identity, one at a time: sums do not depend on the order of arrival."""
    for one in sorted(arrived, key=lambda one: one.identity):
        yield codec.read_upload(one.data, one.identity)
