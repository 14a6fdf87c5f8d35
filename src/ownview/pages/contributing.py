"""A page that can contribute: the agreement inside it, the client's modules as one script, and whom it may reach."""

from __future__ import annotations

import importlib.resources
import re
import time
import urllib.request
from dataclasses import dataclass
from typing import Any

from ownview.base.errors import DataError, SettingError
from ownview.base.json_text import parse_json
from ownview.base.offline_page import Reach
from ownview.one_message.terms import SHARES, Terms

_ADDRESS = re.compile(r"https?://[A-Za-z0-9.\-]+(:\d{1,5})?(/[A-Za-z0-9._~\-]+)*")
"""Nothing in it can end a policy, or begin another source."""
_PATIENCE, _LONGEST = 20.0, 16 << 20
_IMPORT = re.compile(r'^import \{([^}]+)\} from "\./([a-z]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export \{([^}]+)\};$", re.MULTILINE)


@dataclass(frozen=True)
class Contributing:
    """What a page needs to contribute.

    Args:
        terms: the agreement, which the page then knows by itself: no server can name another.
        contributions: that count when the page is made.
    """

    terms: Terms
    contributions: int

    @classmethod
    def at(cls, url: str) -> Contributing:
        """Ask one of the two servers.

        Raises:
            SettingError: the address is none, does not answer, or what it answers is no agreement.
        """
        base = url.rstrip("/")
        if not _ADDRESS.fullmatch(base):
            raise SettingError(f"--contribute {url}: is no address; expected such as https://a.example")
        try:
            terms = Terms.read(_asked(f"{base}/v1/agreement"), base)
            status = parse_json(_asked(f"{base}/v1/status").decode("utf-8"))
            count = int(status["contributions"])
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise SettingError(
                f"--contribute {url}: does not answer as a server of shares ({error}); expected one that "
                "`ownview sums serve` runs"
            ) from error
        if wrong := [one for one in terms.urls.values() if not _ADDRESS.fullmatch(one)]:
            raise DataError(f"{url}: its agreement names {wrong[0]!r}; expected an address such as https://a.example")
        return cls(terms, count)

    @property
    def reach(self) -> Reach:
        """The two servers, with the reader's leave."""
        return Reach(tuple(f"{self.terms.urls[share]}/" for share in SHARES), f"ownview {self.terms.name.hex()[:16]}")

    def model(self) -> dict[str, Any]:
        """What the page's scripts read."""
        return {
            "agreement": self.terms.content.decode("utf-8"), "contributions": self.contributions,
            "on": time.strftime("%Y-%m-%d", time.gmtime()), "leave": self.reach.leave, "client": client_script(),
        }  # fmt: skip


def _asked(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=_PATIENCE) as answer:
        content: bytes = answer.read(_LONGEST + 1)
    return content


def client_script() -> str:
    """The worker and all modules that it imports, as one script: each a function that gives what it exports."""
    made: dict[str, str] = {}
    _put_together("worker.js", made)
    return '"use strict";\nconst modules = {};\n' + "\n".join(made.values())


def _put_together(name: str, made: dict[str, str]) -> None:
    if name in made:
        return
    folder = importlib.resources.files("ownview.one_message") / "client"
    text = (folder / name).read_text(encoding="utf-8")
    for _, needed in _IMPORT.findall(text):
        _put_together(needed, made)
    text = _IMPORT.sub(lambda found: f'const {{{found[1]}}} = modules["{found[2]}"];', text)
    text = _EXPORT.sub(lambda found: f"return {{{found[1]}}};", text)
    made[name] = f'modules["{name}"] = (() => {{\n{text}}})();'
