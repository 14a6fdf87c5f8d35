"""Lines of code in the wheel, by folder: without blanks, comments and docstrings.

python -m tools.lines                   # of this tree
python -m tools.lines --since 9bf92ef   # and since a revision: in files that were there, and in new ones
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = "src/ownview"
_BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def lines_of_code(source: str) -> int:
    """Of a module."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _BLANK:
            found |= {*range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            found -= {*range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)}
    return len(found)


def by_folder() -> Counter[str]:
    """Of this tree."""
    found: Counter[str] = Counter()
    for file in (ROOT / SOURCES).rglob("*.py"):
        inside = file.relative_to(ROOT / SOURCES).parts
        found[inside[0] if len(inside) > 1 else "."] += lines_of_code(file.read_text(encoding="utf-8"))
    return found


def since(revision: str) -> dict[str, int]:
    """What has become of a revision's lines. A file that shares a quarter of its text with an old one is that file."""
    asked = ["diff", "-M25%", "-l10000", "--name-status", revision, "HEAD", "--", SOURCES]
    found = {"then": 0, "went with their files": 0, "in files that were there": 0, "in new files": 0}
    for name in _git("ls-tree", "-r", "--name-only", revision, SOURCES).splitlines():
        found["then"] += _lines(revision, name)
    kept = found["then"]
    for line in _git(*asked).splitlines():
        kind, *names = line.split("\t")
        if kind == "A":
            found["in new files"] += _lines("HEAD", names[0])
        elif kind == "D":
            found["went with their files"] += _lines(revision, names[0])
        else:
            kept += _lines("HEAD", names[-1]) - _lines(revision, names[0])
    return found | {"in files that were there": kept - found["went with their files"]}


def _lines(revision: str, name: str) -> int:
    return lines_of_code(_git("show", f"{revision}:{name}")) if name.endswith(".py") else 0


def _git(*asked: str) -> str:
    return subprocess.run(["git", *asked], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", metavar="REVISION")
    asked = parser.parse_args()
    folders = by_folder()
    table = {**dict(folders.most_common()), "together": folders.total()}
    for name, lines in (table | (since(asked.since) if asked.since else {})).items():
        print(f"{lines:8,}  {name}")


if __name__ == "__main__":
    main()
