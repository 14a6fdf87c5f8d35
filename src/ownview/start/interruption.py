"""However a start ends early, it says that the same command goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ownview.base.errors import UnwrittenError
from ownview.base.failures import TerminatedError, ending
from ownview.runs.batch import BatchError
from ownview.runs.training.training_rounds import InterruptedRunError

GO_ON = "the same command goes on"


@contextmanager
def same_command_goes_on() -> Iterator[None]:
    """For the steps after the data was kept: a signal or a full disk ends in a line that names this command's way on.

    A run inside would name its own, `ownview run --resume`, which ends that run and leaves the steps after it undone.
    """
    try:
        yield
    except InterruptedRunError as stopped:
        raise BatchError(f"stopped {stopped.when}; {GO_ON}", stopped.exit_code) from stopped
    except UnwrittenError as error:
        raise UnwrittenError(error.reason, GO_ON) from error
    except (KeyboardInterrupt, TerminatedError) as stopped:
        end = ending(stopped)
        assert end is not None
        raise BatchError(f"{end.line}; {GO_ON}", end.code) from stopped
