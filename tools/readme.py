"""The README as a package index shows it: outside of the repository, where relative links lead nowhere.

With OWNVIEW_ADDRESS set (https://HOST/OWNER/ownview/blob/v0.2.0, say) links and pictures lead there; without it links
are words and pictures what they show. Built into wheel and sdist by hatchling (`[tool.hatch.metadata.hooks.custom]`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")


def outside(text: str, address: str = "") -> str:
    """Markdown without relative links: to files below an address, or none where it is empty."""

    def link(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        if not address:
            return f"*{words}*" if picture else words
        place = address.replace("/blob/", "/raw/") if picture else address
        return f"{picture}[{words}]({place.rstrip('/')}/{path})"

    return _LINK.sub(link, text)


class OutsideReadme(MetadataHookInterface):
    """Gives the build its long description."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme`, which is dynamic."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown", "text": outside(text, os.environ.get("OWNVIEW_ADDRESS", "")),
        }  # fmt: skip
