"""The conformance kit: what every method and plug-in must satisfy. Public, so that you can test your own.

from ownview.testing import CHECKS, conform

conform(MyMethod())            # all checks, saying what is checked, or one of them:
CHECKS["loop equals vector"](MyMethod())
conform_central(MyBaseline())  # for a model that is not federated
"""

from ownview.testing.checks import CENTRAL_CHECKS, conform_central
from ownview.testing.federated import CHECKS, conform
from ownview.testing.worlds import block_world, federation, small_world

__all__ = ["CENTRAL_CHECKS", "CHECKS", "block_world", "conform", "conform_central", "federation", "small_world"]
