"""The program `ownview`, also as `python -m ownview`.

It imports nothing before it listens to Ctrl-C: the command line takes a moment to load, and
interrupting it prints a line, not a traceback.
"""

import sys

_STOPPED = 130
"""128 + SIGINT, as shells have it."""


def entry() -> None:
    """Load the command line and run it."""
    try:
        from ownview.cli.main import entry as command_line  # noqa: PLC0415 - see above

        command_line()
    except KeyboardInterrupt:
        sys.stderr.write("ownview: stopped\n")
        sys.exit(_STOPPED)


if __name__ == "__main__":
    entry()
