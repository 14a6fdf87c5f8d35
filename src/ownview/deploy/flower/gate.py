"""Who may ask the link for what: places for their messages, and whoever knows the secret for everything.

Flower's link answers on one port to nodes, to people who control it and to programs that run on it, and asks the latter
two for no credentials: whoever reaches the port could enrol keys and start programs.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

FOR_PLACES = "/v1/fleet/"
HEADER = "x-ownview-link"

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]


class Gate:
    """An ASGI application before another one.

    Args:
        inside: the link.
        secret: what a request has to carry in `HEADER`, unless it asks for what is for places.
    """

    def __init__(self, inside: Asgi, secret: str) -> None:
        self.inside, self.secret = inside, secret.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request: passed on, or told that there is nothing."""
        if scope["type"] == "lifespan" or self._may_pass(scope):
            await self.inside(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await send({"type": "http.response.start", "status": 404, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body", "body": b""})

    def _may_pass(self, scope: Scope) -> bool:
        if scope["type"] == "http" and str(scope["path"]).startswith(FOR_PLACES):
            return True
        told = dict(scope.get("headers", ())).get(HEADER.encode(), b"")
        return hmac.compare_digest(told, self.secret)
