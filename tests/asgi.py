"""An ASGI application asked in this process, without a server and its sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any


def posted(app: Any, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> tuple[int, bytes]:
    """Status and body of the answer to a POST; headers are added to, or stand for, those of the body."""
    return _answer(app, "POST", path, body, {"content-length": str(len(body)), **(headers or {})})


def asked(app: Any, path: str) -> tuple[int, bytes]:
    """The same of a GET."""
    return _answer(app, "GET", path, b"", {})


def _answer(app: Any, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    scope: Any = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 80), "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    said: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        said.append(message)

    asyncio.run(app(scope, receive, send))
    return said[0]["status"], b"".join(one.get("body", b"") for one in said[1:])
