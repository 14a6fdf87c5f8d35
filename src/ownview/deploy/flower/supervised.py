"""The link's process: started, and started again when it ends, until nobody needs it any more."""

from __future__ import annotations

import secrets
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

from ownview.base.files import write_secret
from ownview.deploy.flower.link import SECRET

_LOG = "link.log"


class LinkProcess:
    """A link that is there as long as the context lasts; it ends with this process, however that ends.

    Args:
        folder: with certificates; gets link.secret, and link.log with what the link has to say.
        host: to listen at.
        port: to listen at.
        say: told in one line what a person should know.
    """

    def __init__(self, folder: Path, host: str, port: int, say: Callable[[str], None] = lambda line: None) -> None:
        self.folder, self.host, self.port, self.say = folder, host, port, say
        self.secret = secrets.token_hex(32)
        self.process: subprocess.Popen[bytes] | None = None
        self.ended = threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        write_secret(self.folder / SECRET, self.secret.encode("ascii"))
        self.process = self._start()
        self.watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self._end()
        self.watcher.join()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "ownview.deploy.flower.link", str(self.folder)]
        with (self.folder / _LOG).open("ab") as log:
            return subprocess.Popen(
                [*command, "--host", self.host, "--port", str(self.port)],
                stdin=subprocess.PIPE,  # its end is how the link knows that this process has gone
                stdout=log,
                stderr=log,
            )

    def _watch(self) -> None:
        wait = 0.5
        while not self.ended.wait(0.2):
            if self.process is not None and self.process.poll() is not None:
                self.say(f"the link has ended ({self.process.returncode}); starting it again, see {self.folder / _LOG}")
                if self.ended.wait(wait):
                    return
                wait = min(2 * wait, 30.0)
                self.process = self._start()
        self._end()  # where it was started again at the last moment

    def _end(self) -> None:
        process = self.process
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
