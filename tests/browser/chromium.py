"""Headless Chromium, driven over a pipe by its own protocol: no driver and no package is needed besides the browser."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars",
    "--disable-dev-shm-usage", "--remote-debugging-pipe",
)  # fmt: skip

_PATIENCE = 60.0


def find_chromium() -> str | None:
    """$CHROMIUM, or the first browser of that kind on the path."""
    asked = os.environ.get("CHROMIUM")
    return asked or next((found for name in NAMES if (found := shutil.which(name))), None)


def require_chromium() -> Chromium:
    """A started browser; the test is skipped where there is none."""
    program = find_chromium()
    if program is None:
        pytest.skip(f"no Chromium here: install one of {', '.join(NAMES)}, or name it in $CHROMIUM")
    return Chromium(program)


class Chromium:
    """A browser with one page. Everything it logs, throws or asks the network for is kept."""

    def __init__(self, program: str) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        # The browser reads commands from descriptor 3 and answers on 4.
        line = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["bash", "-c", line, program, *_FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self._page()
        self._attach(target)

    def _attach(self, target: str) -> None:
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{part}.enable")
        # Workers are looked at like pages, from their first step on.
        self.call("Target.setAutoAttach", autoAttach=True, waitForDebuggerOnStart=True, flatten=True)

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._profile.cleanup()

    @contextmanager
    def context(self) -> Iterator[None]:
        """Another person's browser: a page with storage of its own, which is gone afterwards as if it were closed."""
        main, self._session = self._session, None
        name = self.call("Target.createBrowserContext")["browserContextId"]
        self._attach(self.call("Target.createTarget", url="about:blank", browserContextId=name)["targetId"])
        try:
            yield
        finally:
            self._session = None
            self.call("Target.disposeBrowserContext", browserContextId=name)
            self._session = main

    def _page(self) -> str:
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            for info in self.call("Target.getTargets")["targetInfos"]:
                if info["type"] == "page":
                    return str(info["targetId"])
            time.sleep(0.05)
        raise TimeoutError("Chromium opened no page")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command, and its answer; events that come meanwhile are noted."""
        number = self._ask(self._session, method, params)
        while True:
            answer = self._read()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return dict(answer["result"])
            self._note(answer)

    def _ask(self, session: str | None, method: str, params: dict[str, Any]) -> int:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if session is not None:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        return self._number

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], _PATIENCE)
            part = os.read(self._from, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("Chromium does not answer")
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(line))

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                thrown = params["exceptionDetails"]
                self.complaints.append(thrown.get("exception", {}).get("description", thrown["text"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.complaints.append(str([argument.get("value") for argument in params["args"]]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.complaints.append(params["entry"]["text"])
            case "Target.attachedToTarget":
                for method in ("Network.enable", "Runtime.enable", "Runtime.runIfWaitingForDebugger"):
                    self._ask(params["sessionId"], method, {})
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])

    def size(self, width: int, height: int, *, phone: bool = False, dark: bool = False) -> None:
        """The window, and which colours the reader prefers."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, page: Path) -> None:
        """Load a file, and wait until it is drawn."""
        self.call("Page.navigate", url=page.resolve().as_uri())
        self.until(lambda: self.run("document.readyState === 'complete' && location.protocol === 'file:'"))
        self.settle()

    def run(self, script: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", script))
        return answer["result"].get("value")

    def until(self, condition: Callable[[], Any]) -> None:
        """Wait for something to become true."""
        deadline = time.monotonic() + _PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError("what was waited for did not come")
            time.sleep(0.05)

    def point(self, selector: str) -> tuple[float, float]:
        """Scroll an element into view and let the page settle; the middle of the element."""
        node = f"document.querySelector({json.dumps(selector)})"
        self.run(f"{node}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        self.settle()
        middle = "({left, top, width, height}) => [left + width / 2, top + height / 2]"
        x, y = self.run(f"({middle})({node}.getBoundingClientRect())")
        return x, y

    def settle(self) -> None:
        """Wait until what was asked for is on the screen: scrolling tells its listeners with the next picture."""
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))")

    def click(self, selector: str) -> None:
        """With the mouse, in the middle of the element."""
        x, y = self.point(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def hover(self, selector: str) -> None:
        """Move the mouse over the element."""
        x, y = self.point(selector)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, key: str) -> None:
        """A key, such as ArrowRight."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """A picture of the window or of the whole page."""
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))
