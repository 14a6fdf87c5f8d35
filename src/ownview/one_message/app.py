"""The two servers that messages are sent to: each keeps its own shares, and b opens batches with a's help.

    GET  /v1/agreement      the agreement, byte by byte
    GET  /v1/status         how many contributed
    GET  /v1/weights        name of the weights that were solved last, a SHA-256; b alone
    GET  /v1/weights/NAME   that file, which never changes; b alone
    POST /v1/messages       a message: 200 and {"new": true | false}
    POST /v1/peer/known     from b to a: heads of messages; the names of those that a has
    POST /v1/peer/batch     from b to a: names of a batch; a's sum of it

Requests of the other server carry SHA-256 of the body, and HMAC-SHA256 of path and that under a key that both have: of
a stranger no body is read. Nothing is logged of who sends: addresses are counted for a minute and forgotten.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ownview.base.errors import MessageError, OwnviewError, UnwrittenError
from ownview.deploy.https.bounded_log import BoundedLog
from ownview.one_message.envelope import NAME, length, opened
from ownview.one_message.opened_sums import ENTRY, LATEST, OpenedSums
from ownview.one_message.senders import WORK, Senders, TooManyError, require_work
from ownview.one_message.store import ASKED_TOGETHER, NO_ROOM, NoRoomError, ShareStore
from ownview.one_message.terms import MOST_NAMES, Share, Terms

PEER = "ownview-peer"
_BODY_SECONDS = 120.0
_MOST_HELD = 512 << 20
"""Bytes of messages' bodies that are in memory at once."""
_SHARES = 8
"""One address has one of so many parts of that, or room for one message."""
_DIGEST = 64
"""Hexadecimal digits of a SHA-256."""
_PATIENCE = 120.0
_REFUSED = (
    "where a's folder or b's came back from a backup, bring the newest of both back, or agree anew with empty "
    "folders; else compare --peer-key and versions of both"
)
_FOR_EVER = "public, max-age=31536000, immutable"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "strict-transport-security": "max-age=31536000",
}

Say = Callable[[str], None]


class ShareServer:
    """One of the two servers.

    Args:
        terms: the agreement.
        share: "a" or "b".
        store: of its shares.
        key: that messages are sealed to.
        peer_key: that both servers have.
        senders: who may send how much.
        say: takes lines for a person.
    """

    def __init__(
        self, terms: Terms, share: Share, store: ShareStore, key: X25519PrivateKey, peer_key: bytes, senders: Senders,
        say: Say,
    ) -> None:  # fmt: skip
        self.terms, self.share, self.store, self.key, self.peer_key = terms, share, store, key, peer_key
        self.senders, self.say, self.refused = senders, say, BoundedLog(say, 10)
        self.held = Counter[str]()
        """By address, bytes of bodies in memory; there are as many addresses as connections at most."""
        self.figures, self.looking = OpenedSums(store.folder, terms, share), ThreadPoolExecutor(1)
        """What pages ask for waits neither for messages nor for a batch that is being opened."""

    def app(self, origins: Sequence[str]) -> Starlette:
        """The application; pages of these origins may send, any where one is *."""
        routes = [
            Route("/v1/agreement", self._agreement),
            Route("/v1/status", self._status),
            Route("/v1/messages", self._answered(self._message), methods=["POST"]),
        ]
        if self.share == "a":
            routes += [
                Route("/v1/peer/known", self._answered(self._known), methods=["POST"]),
                Route("/v1/peer/batch", self._answered(self._batch), methods=["POST"]),
            ]
        else:
            routes += [
                Route("/v1/weights", self._latest),
                Route("/v1/weights/{name:str}", self._weights),
            ]
        app = Starlette(routes=routes)
        app.add_middleware(CORSMiddleware, allow_origins=list(origins), allow_methods=["GET", "POST"],
                           allow_headers=["content-type", WORK], max_age=86_400)  # fmt: skip
        app.add_middleware(_Strict)
        return app

    async def work(self) -> None:
        """Confirm and open for ever (share b)."""
        down = False
        while True:
            try:
                while await asyncio.to_thread(self.store.confirm, self._ask_known):
                    pass
                count = await asyncio.to_thread(self.store.open, self._ask_batch)
                if count:
                    self.say(f"a batch of {count:,} messages was opened; {self.store.status().contributions:,} count")
                down = False
            except (OwnviewError, OSError, sqlite3.Error) as error:
                if not down:
                    self.say(f"{error}; messages wait")
                down = True
            await asyncio.sleep(0.5)

    def _answered(self, handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                return await handler(request)
            except ClientDisconnect:
                return Response(status_code=HTTPStatus.BAD_REQUEST)
            except TooManyError as error:
                return JSONResponse({"error": str(error)}, HTTPStatus.TOO_MANY_REQUESTS, {"retry-after": "60"})
            except NoRoomError as error:  # no refusal: a client that has sent its other half sends this one again
                return JSONResponse({"error": str(error)}, HTTPStatus.SERVICE_UNAVAILABLE, {"retry-after": "60"})
            except (UnwrittenError, sqlite3.OperationalError) as error:  # a full disk, say; strangers hear no path
                self.refused(f"not taken: {error}")
                return JSONResponse({"error": NO_ROOM}, HTTPStatus.SERVICE_UNAVAILABLE, {"retry-after": "60"})
            except OwnviewError as error:
                self.refused(f"refused: {error}")
                return JSONResponse({"error": str(error)}, HTTPStatus.BAD_REQUEST)
            finally:
                self.held -= Counter(getattr(request.state, "held", {}))  # which forgets an address that holds none

        return answer

    async def _agreement(self, _: Request) -> Response:
        return Response(self.terms.content, media_type="application/json", headers={"cache-control": "max-age=300"})

    async def _status(self, _: Request) -> Response:
        status = (await asyncio.get_running_loop().run_in_executor(self.looking, self.figures.status))._asdict()
        return JSONResponse(
            {"share": self.share, "agreement": self.terms.name.hex(), "fewest": self.terms.fewest, **status}
        )

    async def _latest(self, _: Request) -> Response:
        path = self.store.folder / LATEST
        if not path.is_file():
            return JSONResponse({"error": "no weights have been solved yet"}, HTTPStatus.NOT_FOUND)
        return FileResponse(path, media_type="application/json", headers={"cache-control": "no-cache"})

    async def _weights(self, request: Request) -> Response:
        name = request.path_params["name"]
        path = self.store.folder / f"weights.{name}.json"
        if len(name) != 64 or not set(name) <= set("0123456789abcdef") or not path.is_file():
            return JSONResponse({"error": "no such weights"}, HTTPStatus.NOT_FOUND)
        return FileResponse(path, media_type="application/json", headers={"cache-control": _FOR_EVER})

    async def _message(self, request: Request) -> Response:
        self.senders.count(request)
        body = await self._body(request, length(self.terms, self.share), self.senders.address(request))
        require_work(body, request.headers.get(WORK, ""), self.terms.work)
        return JSONResponse({"new": await asyncio.to_thread(self._take, body)})

    def _take(self, body: bytes) -> bool:
        return self.store.put(opened(self.terms, self.share, self.key, body))

    async def _known(self, request: Request) -> Response:
        heads = _cut(await self._of_peer(request, ENTRY * ASKED_TOGETHER), ENTRY)
        return Response(b"".join(await asyncio.to_thread(self.store.known, heads)))

    async def _batch(self, request: Request) -> Response:
        most = NAME * min(MOST_NAMES, self.terms.most * self.terms.groups)
        names = _cut(await self._of_peer(request, most), NAME)
        return FileResponse(await asyncio.to_thread(self.store.batch, names))

    async def _body(self, request: Request, most: int, address: str | None = None) -> bytes:
        """A body of a length that is not too great, in time; held by its address, if any, until there is an answer."""
        said = request.headers.get("content-length", "")
        if not said.isdecimal() or len(said) > 12 or int(said) > most:
            raise MessageError(f"a body of {said[:12] or 'unknown'} bytes; expected {most:,} at most")
        body, request.state.held = bytearray(), Counter[str]()
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                async for piece in request.stream():
                    body += piece
                    if len(body) > most:
                        raise MessageError(f"a body of more than {most:,} bytes")
                    if address is None:
                        continue
                    self.held[address] += len(piece)
                    request.state.held[address] += len(piece)
                    own = max(_MOST_HELD // _SHARES, most)
                    if self.held[address] > own or self.held.total() > _MOST_HELD:
                        raise NoRoomError("too many messages come at once; try again later")
        except TimeoutError:
            raise NoRoomError(f"a body took more than {_BODY_SECONDS:g} s; try again later") from None
        return bytes(body)

    async def _of_peer(self, request: Request, most: int) -> bytes:
        """A body of the other server, of `most` bytes, outside what strangers can fill."""
        said = request.headers.get(PEER, "")
        if not hmac.compare_digest(said.encode(), self._mark(request.url.path, said[:_DIGEST]).encode()):
            raise MessageError("is not from the other server")
        body = await self._body(request, most)
        if hashlib.sha256(body).hexdigest() != said[:_DIGEST]:
            raise MessageError("is not what the other server has sent")
        return body

    def _mark(self, path: str, digest: str) -> str:
        return digest + hmac.new(self.peer_key, f"{path}\n{digest}".encode(), hashlib.sha256).hexdigest()

    def _ask_known(self, heads: Sequence[bytes]) -> Sequence[bytes]:
        return _cut(self._asked("/v1/peer/known", b"".join(heads)), NAME)

    def _ask_batch(self, names: Sequence[bytes]) -> bytes:
        return self._asked("/v1/peer/batch", b"".join(names))

    def _asked(self, path: str, body: bytes) -> bytes:
        parts = urlsplit(self.terms.urls["a"])
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=_PATIENCE)
        try:
            connection.request(
                "POST", parts.path + path, body, {PEER: self._mark(path, hashlib.sha256(body).hexdigest())}
            )
            response = connection.getresponse()
            content = response.read(4 * self.terms.size * self.terms.groups + NAME * MOST_NAMES)
        except (OSError, http.client.HTTPException) as error:
            raise MessageError(f"the other server does not answer: {error}") from error
        finally:
            connection.close()
        if response.status != HTTPStatus.OK:
            why = f"server a answered {response.status}: {content[:200].decode('utf-8', 'replace')}"
            if response.status == HTTPStatus.BAD_REQUEST:
                why += f"; it will not answer otherwise by itself: {_REFUSED}"
            raise MessageError(why)
        return content


class _Strict:
    """Headers that leave a browser nothing to do with an answer but to read it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def strict(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self.app(scope, receive, strict)


def _cut(content: bytes, size: int) -> list[bytes]:
    """Pieces of one size."""
    if len(content) % size:
        raise MessageError(f"{len(content):,} bytes are no pieces of {size} bytes")
    return [content[begin : begin + size] for begin in range(0, len(content), size)]
