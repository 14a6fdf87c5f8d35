"""Size limits of arriving messages, at a server and at a place, in one table.

A message is untrusted. Before any of it is believed, and before memory is taken for it, it is compared
with these numbers. Each is far above what an honest message needs and far below what would harm the reader.
"""

from __future__ import annotations

# --- the envelope: deploy.envelope ---

LONGEST_MESSAGE = 1 << 30
"""Bytes of a whole message."""

LONGEST_QUESTION = 1 << 24
"""Bytes of the note of a question to a place: it lists identities, some eight bytes each."""

LONGEST_ANSWER = 1 << 16
"""Bytes of the note of a place's answer: a few numbers and lines."""

MOST_PARTS = 1 << 20
"""Parts of a message: one for each user that a place was asked about, and one more."""

LONGEST_LINE = 500
"""Characters of a reason or a remark that is shown to a person or written into a log."""

MOST_REMARKS = 20
"""Remarks in one answer."""

# --- numbers in notes: deploy.notes ---

LARGEST_COUNT = 2**32 - 1
"""Of rounds and identities, which messages of masks and envelopes write in four bytes."""

LARGEST_NUMBER = 2**63 - 1
"""Of moments in nanoseconds."""

# --- the agreement: deploy.agreement ---

LONGEST_AGREEMENT = 1 << 26
"""Bytes of an agreement once it is decompressed: a million items with titles."""

MOST_ITEMS = 1 << 24
LONGEST_TEXT = 10_000
"""Characters of an item's id or title, or of a setting."""

MOST_SETTINGS = 1000
"""Settings of a method, and plug-ins around it."""

LARGEST_MODEL = 1 << 34
"""Bytes of all values of a method that are the same for every user; a place refuses to make more of them."""

# --- tables: messages.wire and messages.codec ---

MOST_AXES = 8
"""Axes of a table."""

LARGEST_VALUE = 1e9
"""Size of any value in a table. Changes, counts and noise are far below; a million sums of it are finite in float32."""
