"""Which licences the project's dependencies may have, and what a package's metadata says of its own."""

from __future__ import annotations

import re
from importlib.metadata import Distribution

PERMISSIVE = frozenset(
    [
        "0BSD",
        "Apache-2.0",
        "BSD",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "PSF-2.0",
        "Unlicense",
        "Zlib",
        "Apache-2.0 WITH LLVM-exception",
    ]
)

# Copyleft of single files: whoever changes one of theirs publishes that change. We use them unchanged and copy nothing.
OF_SINGLE_FILES = {"certifi": "MPL-2.0", "hypothesis": "MPL-2.0", "pathspec": "MPL-2.0", "tqdm": "MPL-2.0"}

# Metadata from before SPDX expressions: the words of the field `License` and of classifiers.
SPDX = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "Apache Software License 2.0": "Apache-2.0",
    "BSD 3-Clause": "BSD-3-Clause",
    "BSD 3-Clause License": "BSD-3-Clause",
    "BSD License": "BSD",
    "BSD, Public Domain": "BSD",  # pycryptodome: BSD-2-Clause where it is not in the public domain
    "ISC License": "ISC",
    "ISC License (ISCL)": "ISC",
    "MIT Licence": "MIT",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
CLASSIFIER = "License :: OSI Approved :: "


def licence(package: Distribution) -> str:
    """The package's licence as an SPDX expression where its metadata allows one; "" where they say nothing.

    In the order of trust: `License-Expression`, a `License` of one short line, classifiers (several are alternatives).
    """
    expressions, words, classifiers = (
        [str(line).strip() for line in package.metadata.get_all(field) or []]
        for field in ("License-Expression", "License", "Classifier")
    )
    if expressions:
        return expressions[0]
    if words and words[0] not in ("", "UNKNOWN") and "\n" not in words[0] and len(words[0]) < 60:
        return " OR ".join(SPDX.get(part, part) for part in words[0].split(" OR "))
    named = [line.removeprefix(CLASSIFIER) for line in classifiers if line.startswith(CLASSIFIER)]
    return " OR ".join(SPDX.get(part, part) for part in named)


def allowed(name: str, expression: str) -> bool:
    """Whether package `name` may be depended on under an SPDX expression: one alternative whose every part is allowed.

    Expressions with brackets, unknown words and no licence at all are not allowed: somebody has to look.
    """
    accepted = PERMISSIVE | {OF_SINGLE_FILES[name]} if name in OF_SINGLE_FILES else PERMISSIVE
    alternatives = [re.split(r"\s+AND\s+", part.strip()) for part in re.split(r"\s+OR\s+", expression)]
    return any(all(part in accepted for part in parts) for parts in alternatives)
