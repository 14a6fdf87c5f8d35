"""The ASGI application of `ownview serve`.

Starlette carries it: routes, requests, responses. FastAPI would add pydantic, whose errors are nested documents where
ours are one line, and a second description of every request beside the one that already makes the OpenAPI document.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ownview.base.version import __version__
from ownview.serve.arms import Arm, ImpressionLog, Split
from ownview.serve.asking import CHOSEN, ITEMS, LONGEST_BODY, RECOMMEND, SIMILAR, RefusedError, from_body, from_query
from ownview.serve.counters import Counters
from ownview.serve.listing import recommended, similar, titled
from ownview.serve.model import Mask, ServedModel
from ownview.serve.openapi import document
from ownview.serve.stock import Stock

_LONG = 500
"""Items of a history from which on it is scored on a thread: others are answered meanwhile."""
_BODY_SECONDS = 10.0
_DROPPED = 64 << 20
"""Bytes of a body that are read though it is too long."""
_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'",
}

Handler = Callable[[Request], Awaitable[Mapping[str, Any]]]


class Service:
    """What requests are answered with. `models` is replaced as a whole; a request keeps what it began with.

    Args:
        models: by arm; "b" only where there is a split.
        metrics: of this worker.
        stock: what is in stock; None where everything is.
        split: of units between the two models.
        log: of impressions.
    """

    def __init__(
        self,
        models: Mapping[Arm, ServedModel],
        metrics: Counters,
        stock: Stock | None = None,
        split: Split | None = None,
        log: ImpressionLog | None = None,
    ) -> None:
        self.models, self.metrics, self.stock, self.split, self.log = dict(models), metrics, stock, split, log

    def swap(self, arm: Arm, model: ServedModel) -> None:
        """Answer with another model from the next request on."""
        self.models = {**self.models, arm: model}
        self.metrics.add("swaps")

    def app(self, origins: tuple[str, ...] = ()) -> Starlette:
        """The application.

        Args:
            origins: of web pages that may ask; none but those of the same origin without.
        """
        handlers: dict[str, tuple[str, str, Handler]] = {
            "recommend": ("POST", "/v1/recommend", self._recommend),
            "similar": ("GET", "/v1/similar", self._similar),
            "items": ("GET", "/v1/items", self._items),
            "chosen": ("POST", "/v1/chosen", self._chosen),
            "health": ("GET", "/health", self._health),
            "version": ("GET", "/version", self._version),
            "openapi": ("GET", "/openapi.json", self._openapi),
        }
        routes = [
            Route(path, self._counted(name, handler), methods=[method])
            for name, (method, path, handler) in handlers.items()
        ]
        routes.append(Route("/metrics", self._metrics, methods=["GET"]))
        app = Starlette(routes=routes, exception_handlers={404: _nothing_here, 405: _nothing_here})
        if origins:
            from starlette.middleware.cors import CORSMiddleware  # noqa: PLC0415 - only where it is asked for

            app.add_middleware(
                CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=["content-type"]
            )
        return app

    def _counted(self, name: str, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            begun = time.perf_counter()
            try:
                response = _json(await handler(request))
            except RefusedError as error:
                response = _json({"error": str(error)}, error.status)
                if error.status in (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.REQUEST_TIMEOUT):
                    response.headers["connection"] = "close"  # the rest of the body is not read
            except Exception:
                self.metrics.answered(name, HTTPStatus.INTERNAL_SERVER_ERROR, time.perf_counter() - begun)
                raise
            self.metrics.answered(name, response.status_code, time.perf_counter() - begun)
            return response

        return answer

    async def _recommend(self, request: Request) -> Mapping[str, Any]:
        asked = from_body(await _body(request), RECOMMEND)
        arm: Arm = "a" if self.split is None or "unit" not in asked else self.split.arm(asked["unit"])
        model = self.models[arm]
        work = (model, asked, self._in_stock(model))
        long = len(asked.get("history", ())) > _LONG or model.form["kind"] == "factors"
        answer = await asyncio.to_thread(recommended, *work) if long else recommended(*work)
        if "unknown" in answer:
            self.metrics.add("unknown_ids", answer["unknown"]["count"])
        if self.split is not None and "unit" in asked:
            answer["arm"] = arm
            if self.log is not None:
                try:
                    answer["impression"] = self.log.shown(arm, self.split.bucket(asked["unit"]), model.version)
                    self.metrics.add(f"shown_{arm}")
                except OSError:  # a full disk, say: a person gets the list, and the test goes without it
                    self.metrics.add("unlogged")
        return answer

    async def _similar(self, request: Request) -> Mapping[str, Any]:
        asked = _needs("item", from_query(request.query_params, SIMILAR))
        model = self.models["a"]
        return similar(model, str(asked["item"]), asked["k"], self._in_stock(model))

    async def _items(self, request: Request) -> Mapping[str, Any]:
        asked = _needs("prefix", from_query(request.query_params, ITEMS))
        return titled(self.models["a"], asked["prefix"], asked["k"])

    async def _chosen(self, request: Request) -> Mapping[str, Any]:
        asked = _needs("impression", from_body(await _body(request), CHOSEN))
        if self.log is None:
            raise RefusedError("impression: this server keeps no log; expected one with --log", HTTPStatus.NOT_FOUND)
        if not (asked["impression"].isalnum() and asked["impression"].isascii()):
            raise RefusedError("impression: expected the name that a list came with")
        try:
            self.log.chosen(asked["impression"])
        except OSError:
            self.metrics.add("unlogged")
            raise RefusedError("impression: the log cannot be written", HTTPStatus.SERVICE_UNAVAILABLE) from None
        self.metrics.add("chosen")
        return {"logged": True}

    async def _health(self, _: Request) -> Mapping[str, Any]:
        return {"status": "ok"}

    async def _version(self, _: Request) -> Mapping[str, Any]:
        models = {
            arm: {
                "model": model.version,
                "method": model.about["method"]["name"],
                "data": model.about["data"]["title"],
                "items": model.size,
                "users": model.users,
                "columns": sorted(model.columns),
            }
            for arm, model in self.models.items()
        }
        return {"ownview": __version__, "models": models}

    async def _openapi(self, _: Request) -> Mapping[str, Any]:
        return document()

    async def _metrics(self, _: Request) -> Response:
        gauges = [
            ("model_items", f'{{arm="{arm}",model="{one.version}"}}', float(one.size))
            for arm, one in self.models.items()
        ]
        if self.stock is not None:
            gauges.append(("in_stock_items", "", float(self.stock.mask(self.models["a"]).sum())))
        return Response(self.metrics.text(gauges), media_type="text/plain; version=0.0.4", headers=_HEADERS)

    def _in_stock(self, model: ServedModel) -> Mask | None:
        return None if self.stock is None else self.stock.mask(model)


async def _body(request: Request) -> bytes:
    """A body that is not too long and comes in time.

    One that is too long is read to its end and dropped, up to `_DROPPED`: a caller that still sends hears no answer.
    """
    length = request.headers.get("content-length", "0")
    if not length.isdecimal() or len(length) > 15 or int(length) > _DROPPED:
        raise _too_long(f"{length[:15]} bytes")
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for piece in request.stream():
                size += len(piece)
                if size <= LONGEST_BODY:
                    body += piece
                elif size > _DROPPED:
                    break
    except TimeoutError:
        raise RefusedError(f"the body took more than {_BODY_SECONDS:g} s", HTTPStatus.REQUEST_TIMEOUT) from None
    except ClientDisconnect:
        raise RefusedError("the connection ended within a body") from None
    if size > LONGEST_BODY:
        raise _too_long(f"{size:,} bytes")
    return bytes(body)


def _too_long(found: str) -> RefusedError:
    why = f"a body of {found}; expected {LONGEST_BODY:,} bytes at most: send the latest items of a history"
    return RefusedError(why, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


def _needs(name: str, asked: dict[str, Any]) -> dict[str, Any]:
    if name not in asked:
        raise RefusedError(f"{name}: not there; expected it")
    return asked


def _json(content: Mapping[str, Any], status: HTTPStatus = HTTPStatus.OK) -> Response:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Response(text.encode("utf-8", "replace"), int(status), _HEADERS, "application/json")


async def _nothing_here(request: Request, _: Exception) -> Response:
    why = f"{request.method} {request.url.path[:80]}: nothing here; GET /openapi.json says what there is"
    return _json({"error": why}, HTTPStatus.NOT_FOUND)
