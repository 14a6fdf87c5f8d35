"""The conformance kit: what every method and plug-in must satisfy. Public, so that you can test your own.

from ownview.testing import CHECKS, conform

conform(MyMethod())            # all checks, or
CHECKS["loop equals vector"](MyMethod())
"""

from ownview.testing.conformance import CHECKS, conform
from ownview.testing.worlds import block_world, federation, small_world

__all__ = ["CHECKS", "block_world", "conform", "federation", "small_world"]
