"""A typed client of `ownview serve`; it needs nothing but Python.

    with ServeClient("http://127.0.0.1:8080") as client:
        lists = client.recommend(["1", "2"], k=10, explain=True)

A connection that breaks is made once more: to ask twice changes nothing on the server.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode, urlsplit

from ownview.base.errors import MessageError, SettingError

_LARGEST = 64 << 20
"""Bytes of an answer."""


class Reason(NamedTuple):
    """An item of a history that speaks for a listed one, and its share of all that does."""

    item: str
    title: str
    share: float


class Listed(NamedTuple):
    """An item of a list. `because`: empty where no explanation was asked for."""

    item: str
    title: str
    score: float
    because: tuple[Reason, ...] = ()


class Recommended(NamedTuple):
    """An answer.

    model:      version of the model that made the list
    items:      the best first
    unknown:    ids of the request that the model does not know, twenty at most
    arm:        of an A/B test; None without one
    impression: what `chosen` is called with; None without a log
    """

    model: str
    items: tuple[Listed, ...]
    unknown: tuple[str, ...]
    arm: str | None
    impression: str | None


class ServeClient:
    """One connection to a server.

    Args:
        url: such as http://127.0.0.1:8080.
        timeout: seconds for an answer.
    """

    def __init__(self, url: str, timeout: float = 10.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SettingError(f"{url}: expected an address such as http://127.0.0.1:8080")
        made = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = made(parts.hostname, parts.port, timeout=timeout)
        self._base = parts.path.rstrip("/")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    def recommend(  # noqa: PLR0913 - the request's fields
        self,
        history: Sequence[str | int] | None = None,
        *,
        user: str | int | None = None,
        k: int = 10,
        exclude: Sequence[str | int] = (),
        only: Sequence[str | int] | None = None,
        where: Mapping[str, Sequence[str]] | None = None,
        in_stock: bool = True,
        again: bool = False,
        diversity: float = 0.0,
        popularity: float = 0.0,
        explain: bool = False,
        unit: str | None = None,
    ) -> Recommended:
        """Items for a history (ids, oldest first) or for a known user; docs/serve.md has what each argument does.

        Raises:
            MessageError: the server refused, in its own words, or cannot be reached.
        """
        asked = {
            "history": None if history is None else list(history), "user": user, "k": k, "exclude": list(exclude),
            "only": None if only is None else list(only), "where": where, "in_stock": in_stock, "again": again,
            "diversity": diversity, "popularity": popularity, "explain": explain, "unit": unit,
        }  # fmt: skip
        body = {name: value for name, value in asked.items() if value is not None}
        answer = self._asked("POST", "/v1/recommend", body)
        items = tuple(_listed(one) for one in answer["recommendations"])
        unknown = tuple(answer.get("unknown", {}).get("ids", ()))
        return Recommended(answer["model"], items, unknown, answer.get("arm"), answer.get("impression"))

    def similar(self, item: str | int, k: int = 10) -> tuple[Listed, ...]:
        """Items like one item."""
        return tuple(_listed(one) for one in self._get("/v1/similar", item=item, k=k)["similar"])

    def items(self, prefix: str, k: int = 10) -> tuple[tuple[str, str], ...]:
        """Id and title of items by what a person types of a title."""
        return tuple((one["item"], one["title"]) for one in self._get("/v1/items", prefix=prefix, k=k)["items"])

    def chosen(self, impression: str) -> None:
        """Report that something of a list was chosen."""
        self._asked("POST", "/v1/chosen", {"impression": impression})

    def version(self) -> dict[str, Any]:
        """Versions of the program and its models."""
        return self._get("/version")

    def healthy(self) -> bool:
        """Whether the server answers."""
        try:
            return bool(self._get("/health")["status"] == "ok")
        except MessageError:
            return False

    def _get(self, path: str, **query: object) -> dict[str, Any]:
        return self._asked("GET", f"{path}?{urlencode(query)}" if query else path, None)

    def _asked(self, method: str, path: str, body: Mapping[str, Any] | None) -> dict[str, Any]:
        sent = None if body is None else json.dumps(body).encode()
        headers = {} if sent is None else {"content-type": "application/json"}
        for attempt in (1, 2):
            try:
                self._connection.request(method, self._base + path, sent, headers)
                response = self._connection.getresponse()
                content = response.read(_LARGEST)
                if response.length and len(content) < _LARGEST:  # its worker was killed within the answer
                    raise http.client.IncompleteRead(content, response.length)
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                if attempt == 2:
                    raise MessageError(f"the server at {self._connection.host} does not answer: {error}") from error
            else:
                break
        return _read(response.status, content)


def _read(status: int, content: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(content)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise MessageError(f"the server's answer (status {status}) is no JSON object")
    if status != http.HTTPStatus.OK:
        raise MessageError(str(answer.get("error", f"status {status}")))
    return answer


def _listed(one: Mapping[str, Any]) -> Listed:
    because = tuple(Reason(why["item"], why["title"], why["share"]) for why in one.get("because", ()))
    return Listed(one["item"], one["title"], one["score"], because)
