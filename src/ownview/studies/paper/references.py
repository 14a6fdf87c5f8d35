"""BibTeX of the methods that runs use."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable

from ownview.base.version import __version__

_USED = {
    "bpr": "rendle2009bpr", "centrap": "li2024fedrap", "colr": "nguyen2024colr", "ease": "steck2019ease",
    "elastic-merging": "chen2025fedem", "fcf": "ammad2019fcf", "fedcia": "han2025fedcia", "fedease": "steck2019ease",
    "fedem": "chen2025fedem", "fedfast": "muhammad2020fedfast", "fedials": "hu2008ials rendle2022ials",
    "fedmf": "chai2020fedmf", "fedncf": "perifanis2022fedncf", "fednext": "choi2021slist", "fedrap": "li2024fedrap",
    "fedrecon": "singhal2021fedrecon", "fedsasrec": "kang2018sasrec", "gpfedrec": "zhang2024gpfedrec",
    "ials": "hu2008ials rendle2022ials", "ifedrec": "zhang2024ifedrec", "itemknn": "sarwar2001itemknn",
    "late-aggregation": "pfedclr2025", "lightgcn": "he2020lightgcn", "mf": "koren2009mf", "ncf": "he2017ncf",
    "perfedrec": "luo2022perfedrec", "pfedclr": "pfedclr2025", "pfedgraph": "ye2023pfedgraph",
    "pfedrec": "zhang2023dual", "dual-personalisation": "zhang2023dual", "plgc": "shen2025plgc",
    "rp3beta": "paudel2017rp3beta", "sasrec": "kang2018sasrec", "slim": "ning2011slim", "slist": "choi2021slist",
}  # fmt: skip
"""By method or plug-in, keys of the entries; controls have none."""


def bibtex(names: Iterable[str]) -> str:
    """Entries of everything that these methods and plug-ins are made from, each once, and of Ownview itself."""
    keys = dict.fromkeys(key for name in names for key in _USED.get(name.lower(), "").split())
    file = importlib.resources.files("ownview.studies.paper") / "methods.bib"
    every = {
        line.partition("{")[2].partition(",")[0]: line
        for line in file.read_text("utf-8").splitlines()
        if line[:1] == "@"
    }
    # @misc, because BibTeX's own styles do not know @software.
    own = (
        "@misc{ownview, author = {{The Ownview maintainers}}, "
        f"title = {{Ownview: personalised federated recommendation}}, note = {{Version {__version__}}}}}"
    )
    return "\n".join([own, *(every[key] for key in keys)]) + "\n"
