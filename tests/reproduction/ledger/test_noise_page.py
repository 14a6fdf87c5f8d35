"""Published tables with noise: the row without, the paper's figure, the one here, and what an upload gives away."""

from __future__ import annotations

from typing import Any

import pytest
from reproduction.ledger.lines import lines
from reproduction.ledger.noise_page import in_words, noise_lines, with_noise_tables
from reproduction.ledger.rows import without_noise
from reproduction.ledger.uploads import LATER, UploadRecord

from ownview.base.errors import OutputError
from tests.reproduction.ledger.test_lines import entry, record, row_of

NOISY = row_of("PFedRec", "7", "ml-100k", "PFedRec+laplace(0.2)")
ALL_SCALES = ["none", *(f"Laplace {scale}" for scale in ("0.1", "0.2", "0.3", "0.4", "0.5", "1"))]
FOUND = noise_lines(lines(record(entry(NOISY.here, 0, 0.7), entry(NOISY.here, 1, 0.8), not_found=("tafeng",))))


def attack(name: str, number: int, auc: float) -> tuple[tuple[str, int], dict[str, Any]]:
    values = {"precision": 0.25, "recall": 0.75, "precision at k": 0.5, "AUC": auc, "shuffled AUC": 0.55}
    found = {"row": name, "round": number, "values": values, "provenance": {"revision": f"r{number}"}}
    return (name, number), found | ({"epsilon_of_median_user": 1234.5} if number == 1 else {})


def shown(marker: str, *attacks: tuple[tuple[str, int], dict[str, Any]]) -> list[str]:
    text = f"before\n<!-- noise:{marker} -->\nold\n<!-- end of noise -->\nafter\n"
    made = with_noise_tables(text, FOUND, UploadRecord(dict(attacks)), "page.md")
    assert with_noise_tables(made, FOUND, UploadRecord(dict(attacks)), "page.md") == made
    assert made.startswith("before\n")
    assert made.endswith("\nafter\n")
    assert "old" not in made
    return made.splitlines()


def test_what_was_not_run_says_so() -> None:
    page = shown("pfedrec")
    assert "| ml-100k | none | 0.7162 / 0.4344 | not run | not run | not run | not run | not run | - |" in page
    assert (
        "| ml-100k | Laplace 0.2 | 0.7126 / 0.433 | 0.750 / 0.375 (2) | not run | not run | not run | not run | - |"
        in page
    )
    assert "Uploads of 0 of 24 settings have been attacked: 50 users, seed 0." in page
    assert "| tafeng | none | 0.9943 / 0.9911 | data not to be had | - | - | - | - | - |" in shown("fedrap")


def test_an_attack_stands_beside_the_accuracy() -> None:
    assert NOISY.here is not None
    bare, noisy = without_noise()[NOISY.here.name].name, NOISY.here.name
    page = shown("pfedrec", attack(noisy, 1, 0.98), attack(noisy, LATER, 0.91), attack(bare, 1, 1.0))
    (line,) = (
        line for line in page if line.startswith("| ml-100k | Laplace 0.2 | 0.7126 / 0.433 | 0.750 / 0.375 (2) |")
    )
    assert line.endswith(" | 0.25 / 0.75 | 0.50 | 0.98 (0.55) | 0.91 (0.55) | 1,234 |")
    assert any(line.startswith("| ml-100k | none | ") and "0.25 / 0.75" in line for line in page)
    assert f"Uploads of 2 of 24 settings have been attacked: 50 users, seed 0; revision r1, r{LATER}." in page


def test_rows_of_one_setting_stand_together_and_own_systems_once() -> None:
    heads = [line for line in shown("pfedclr") if line.startswith("PFedCLR, Table")]
    assert heads == ["PFedCLR, Table 8:", "PFedCLR, Table 9:"]
    assert "FedRAP, Tables 5 and 6:" in shown("fedrap")
    noise = [line.split(" | ")[1] for line in shown("pfedclr") if line.startswith("| filmtrust | ")]
    assert noise == ALL_SCALES
    own = [line.split(" | ")[:2] for line in shown("own/ml-100k") if line.startswith("| P")]
    assert own == [
        *(["| PFedRec", noise] for noise in ALL_SCALES[:-1]),
        *(["| PFedCLR", noise] for noise in ALL_SCALES),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("nothing", "page.md: expected lines <!-- noise:PAPER -->"),
        ("<!-- noise:pfedrek -->\n<!-- end of noise -->", "noise:pfedrek: no such tables; did you mean 'pfedrec'?"),
        ("<!-- noise:own/ml-10k -->\n<!-- end of noise -->", "noise:own/ml-10k: no such data; did you mean 'ml-100k'?"),
    ],
)
def test_a_wrong_marker_is_an_error(text: str, fact: str) -> None:
    with pytest.raises(OutputError, match=fact.partition("?")[0]):
        with_noise_tables(text, FOUND, UploadRecord(), "page.md")


def test_noise_in_words() -> None:
    assert in_words("laplace:0.1") == "Laplace 0.1"
    assert in_words("gaussian:clip=0.1,noise=1") == "Gaussian, clip 0.1, z 1"
