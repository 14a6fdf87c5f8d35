"""Names and modules of earlier versions: a sentence says where they are now."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import ownview


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("ownview.masking", "ownview.privacy.masking"),
        ("ownview.data.catalog", "ownview.data.datasets.catalog"),
        ("ownview.federation.wire", "ownview.messages.wire"),
        ("ownview.report", "ownview.reports"),
        ("ownview.studies.ledger", "reproduction/ledger, in a clone of the repository"),
    ],
)
def test_a_module_that_has_moved_says_where_it_is(before: str, now: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"^{before} is now {now}; see CHANGELOG.md$"):
        importlib.import_module(before)


@pytest.mark.parametrize("name", ["ownview.no_such_room", "ownview.base.no_such_file"])
def test_a_module_that_never_was_is_not_there(name: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=f"^{name} is not there; public names are those of `import ownview`"):
        importlib.import_module(name)


def test_modules_of_others_are_left_to_python() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'no_such_package'$"):
        importlib.import_module("no_such_package")


def test_a_public_name_of_an_earlier_version_says_what_it_is_now() -> None:
    with pytest.raises(ImportError, match=r"ownview\.Gathering is now ownview\.ReportingMethod"):
        exec("from ownview import Gathering")
    with pytest.raises(ImportError, match=r"ownview\.OwnHistory is now"):
        getattr(ownview, "OwnHistory")  # noqa: B009 - no type checker knows it


def test_the_sentence_costs_no_import() -> None:
    listed = "import sys; before = {*sys.modules}; import ownview; print(*({*sys.modules} - before))"
    found = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True)
    assert not {"importlib.abc", "tempfile", "ownview.public"} & set(found.stdout.split())
