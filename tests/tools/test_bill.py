"""The bill of materials lists what is installed; licences that nobody weighed are refused."""

from __future__ import annotations

import json
from importlib.metadata import PathDistribution, version
from pathlib import Path

import pytest
from tools.bill import Component, bill, installed, main, refused
from tools.licences import allowed, licence
from tools.lock import ROOT, pins


@pytest.mark.parametrize(
    ("name", "expression", "may"),
    [
        ("a", "MIT", True),
        ("a", "BSD-3-Clause AND 0BSD AND MIT", True),
        ("a", "Apache-2.0 AND Apache-2.0 WITH LLVM-exception", True),
        ("a", "GPL-3.0-only OR MIT", True),
        ("a", "GPL-3.0-only AND MIT", False),
        ("a", "MIT AND (GPL-3.0-only OR MIT)", False),
        ("a", "MPL-2.0", False),
        ("tqdm", "MPL-2.0 AND MIT", True),
        ("tqdm", "AGPL-3.0-only", False),
        ("a", "UNKNOWN", False),
        ("a", "", False),
    ],
)
def test_an_expression_is_allowed_where_one_alternative_is(name: str, expression: str, may: bool) -> None:
    assert allowed(name, expression) is may


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("License-Expression: MIT AND Zlib\nLicense: other", "MIT AND Zlib"),
        ("License: MIT Licence", "MIT"),
        ("License: UNKNOWN\nClassifier: License :: OSI Approved :: MIT License", "MIT"),
        ("License: BSD 3-Clause OR Apache-2.0", "BSD-3-Clause OR Apache-2.0"),
        ("License: UNKNOWN", ""),
    ],
)
def test_metadata_of_every_age_are_read(lines: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "METADATA").write_text(f"Metadata-Version: 2.4\nName: a\nVersion: 1\n{lines}\n", encoding="utf-8")
    assert licence(PathDistribution(tmp_path)) == expected


def test_every_pinned_package_that_is_installed_has_an_allowed_licence() -> None:
    assert refused(installed(), pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))) == []


def test_what_is_not_pinned_is_listed_and_not_judged() -> None:
    strange = Component("strange", "1.0", "")
    assert refused([strange], ["other"]) == []
    assert refused([strange], ["strange"]) == [strange]


def test_the_bill_lists_every_package_once_and_is_the_same_for_the_same_packages(tmp_path: Path) -> None:
    assert main(tmp_path / "new" / "sbom.json") == 0
    document = json.loads((tmp_path / "new" / "sbom.json").read_text(encoding="utf-8"))
    assert document == bill(installed())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    references = [it["bom-ref"] for it in document["components"]]
    assert len(references) == len(set(references))
    assert f"pkg:pypi/numpy@{version('numpy')}" in references
    assert Component("torch", "2.13.0+cpu", "MIT").purl == "pkg:pypi/torch@2.13.0"
