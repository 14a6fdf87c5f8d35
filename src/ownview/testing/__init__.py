"""The conformance kit: what every method and plug-in must satisfy. Public, so that you can test your own.

from ownview.testing import CHECKS, conform

conform(MyMethod())            # all checks, or
CHECKS["loop equals vector"](MyMethod())
conform_central(MyBaseline())  # for a model that is not federated

Methods whose clients send sums have checks of their own, GATHERING_CHECKS; `conform` takes both kinds.
"""

from ownview.testing.central import CENTRAL_CHECKS, conform_central
from ownview.testing.conformance import CHECKS, conform
from ownview.testing.gatherings import GATHERING_CHECKS, gathering
from ownview.testing.worlds import block_world, federation, small_world

__all__ = [
    "CENTRAL_CHECKS",
    "CHECKS",
    "GATHERING_CHECKS",
    "block_world",
    "conform",
    "conform_central",
    "federation",
    "gathering",
    "small_world",
]
