"""A message between coordinator and place inside a message of Flower's."""

from __future__ import annotations

import secrets

from flwr.app import ConfigRecord, Message, RecordDict

_RECORD, _FIELD, _SALT = "ownview", "message", "salt"
LIFETIME = 3600.0
"""Seconds for which the link keeps a message and takes an answer to it."""


def parcel(message: bytes, node: int) -> Message:
    """For the node with that number. The salt makes the parcel's id one that no other node can guess."""
    return Message(_content(message), node, "query", ttl=LIFETIME)


def reply(message: bytes, to: Message) -> Message:
    """The answer to a parcel."""
    return Message(_content(message), reply_to=to)


def opened(found: Message) -> bytes | None:
    """What is inside; None where there is nothing of ours, or the link tells of an error."""
    if not found.has_content():
        return None
    record = found.content.get(_RECORD)
    inside = record.get(_FIELD) if isinstance(record, ConfigRecord) else None
    return inside if isinstance(inside, bytes) else None


def _content(message: bytes) -> RecordDict:
    return RecordDict({_RECORD: ConfigRecord({_FIELD: message, _SALT: secrets.token_bytes(16)})})
