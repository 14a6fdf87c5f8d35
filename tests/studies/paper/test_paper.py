"""Tables, figures and references for a paper."""

from __future__ import annotations

import re
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import ownview as ov
from ownview.base.errors import SettingError
from ownview.registry import BASELINES, METHODS, PLUGINS
from ownview.studies.paper.canvas import Canvas
from ownview.studies.paper.references import _USED, bibtex
from ownview.studies.paper.tables import _holm, paper_table
from tests.outcome import Outcome


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("paper") / "runs"
    slow = {"clients": "200", "devices": "tiers=0.7:1+0.3:10"}
    ov.compare(["popularity", "ease", ov.FedMF(local_epochs=1)], rounds=3, seeds=2, federation=slow, out=made)
    return made


def test_a_table_comes_in_three_forms_with_any_metrics(folder: Path, ownview: Callable[..., Outcome]) -> None:
    done = ownview("paper", folder, "-o", folder.parent / "t.tex", "--metric", "NDCG@10", "--metric", "coverage@10")
    assert done.code == 0, done.err
    tex = (folder.parent / "t.tex").read_text()
    assert tex.count(r"\textbf") == 2
    assert tex.count(r"\underline") == 2
    assert r"\begin{tabular}{lrr}" in tex
    assert r" & \multicolumn{2}{c}{honest} \\" in tex
    assert "coverage@10" in tex
    assert re.search(r"fedmf.* & .*\\\\$", tex, re.MULTILINE)
    csv = ownview("paper", folder, "-o", folder.parent / "t.csv")
    assert csv.code == 0
    lines = (folder.parent / "t.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * 2
    runs = [ov.open_run(one) for one in sorted(folder.iterdir())]
    table = paper_table(runs)
    mean = next(cell.mean for (row, column), cell in table.cells.items() if row == "ease" and column[2] == "HR@10")
    assert f"{mean:.8f}" in (folder.parent / "t.csv").read_text()
    assert f"**{mean:.4f}" in ownview("paper", folder).out
    assert "already exists" in ownview("paper", folder, "-o", folder.parent / "t.csv").err


SUITE = """
title = "two of one kind"
rounds = 2
seeds = 2
protocols = ["honest"]
data = ["goodbooks"]
[[rows]]
name = "slow"
method = "fedmf"
settings = {local_epochs = 1, embedding_size = 4, learning_rate = 0.01}
[[rows]]
name = "fast & loose"
method = "fedmf"
settings = {local_epochs = 1, embedding_size = 4, learning_rate = 0.1623456789}
"""


def test_rows_of_a_suite_have_its_names_and_its_order(tmp_path: Path, ownview: Callable[..., Outcome]) -> None:
    (tmp_path / "two.toml").write_text(SUITE)
    ov.bench(tmp_path / "two.toml", out=tmp_path / "suite")
    done = ownview("paper", tmp_path / "suite")
    assert [line.split(" | ")[0] for line in done.out.splitlines()[2:]] == ["| slow", "| fast & loose"], done.err
    assert "against" in ownview("paper", tmp_path / "suite", "--mine", "fast & loose").out
    drawn = ownview("paper", tmp_path / "suite", "-o", tmp_path / "curves.svg")
    assert drawn.code == 0, drawn.err
    assert ">slow<" in (tmp_path / "curves.svg").read_text()
    # Without the suite's record, settings tell rows apart, in as many digits as a reader needs.
    (tmp_path / "suite" / "results.json").unlink()
    bare = ownview("paper", tmp_path / "suite")
    assert {line.split(" | ")[0] for line in bare.out.splitlines()[2:]} == {
        "| fedmf (learning_rate=0.01)", "| fedmf (learning_rate=0.1623)",
    }  # fmt: skip


def test_one_run_does_not_count_twice_nor_as_a_seed_of_another(tmp_path: Path, ownview: Callable[..., Outcome]) -> None:
    for place, rounds in (("a", 1), ("b", 1), ("c", 2)):
        ov.run("fedmf", settings={"local_epochs": 1, "embedding_size": 4}, rounds=rounds, out=tmp_path / place)
    done = ownview("paper", tmp_path / "a", tmp_path / "b")
    assert (done.code, "both seed 0 of fedmf; give one of them" in done.err) == (2, True)
    assert "fedmf (rounds=2)" in ownview("paper", tmp_path / "a", tmp_path / "c").out


def test_one_row_is_held_against_each_by_paired_tests(folder: Path, ownview: Callable[..., Outcome]) -> None:
    runs = [ov.open_run(one) for one in sorted(folder.iterdir())]
    table = paper_table(runs)
    found = table.against("ease")
    assert {one.other for one in found} == {"popularity", next(row for row in table.rows if row.startswith("fedmf"))}
    for one in found:
        mine, other = (table.cells[row, one.column].mean for row in ("ease", one.other))
        assert one.test.difference == pytest.approx(mine - other, abs=1e-12)
        assert one.test.low <= one.test.difference <= one.test.high
        assert one.p < 0.05
    for form in ("x.tex", "x.csv", "x.md"):
        assert ownview("paper", folder, "--mine", "ease", "-o", folder.parent / form).code == 0
    assert "did you mean 'ease'" in ownview("paper", folder, "--mine", "eas").err
    assert _holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@pytest.mark.parametrize("kind", ["curves", "activity", "bytes", "time"])
def test_figures_are_svg_and_pdf(kind: str, folder: Path, ownview: Callable[..., Outcome]) -> None:
    svg, pdf = folder.parent / f"{kind}.svg", folder.parent / f"{kind}.pdf"
    for out in (svg, pdf):
        done = ownview("paper", folder, "--figure", kind, "-o", out)
        assert done.code == 0, done.err
    tree = ElementTree.parse(svg)
    words = [one.text or "" for one in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert any(word.startswith("fedmf") for word in words)
    assert any("NDCG@10" in word for word in words)
    data = pdf.read_bytes()
    assert data.startswith(b"%PDF-1.4")
    begins = int(data.split(b"startxref\n")[1].split(b"\n")[0])
    assert data[begins:].startswith(b"xref")
    for number, line in enumerate(data[begins:].split(b"\n")[3:8], start=1):
        assert data[int(line[:10]) :].startswith(b"%d 0 obj" % number)
    drawn = zlib.decompress(data.split(b"stream\n", 1)[1].split(b"\nendstream")[0])
    assert drawn.count(b"BT") == len(words)


def test_what_a_figure_cannot_show_is_said(folder: Path, ownview: Callable[..., Outcome]) -> None:
    assert "none of these runs has budgets" in ownview("paper", folder, "--figure", "epsilon", "-o", "e.svg").err
    assert "expected one of curves" in ownview("paper", folder, "--figure", "pie", "-o", "e.svg").err
    assert "expected an ending" in ownview("paper", folder, "-o", "e.docx").err
    with pytest.raises(SettingError, match=r"no run has a metric 'NDCG@1O'; choose from .*NDCG@10"):
        paper_table([ov.open_run(next(iter(sorted(folder.iterdir()))))], ["NDCG@1O"])


def test_every_method_of_a_paper_has_its_entry(folder: Path, ownview: Callable[..., Outcome]) -> None:
    every: dict[str, Any] = {**METHODS, **BASELINES, **PLUGINS}
    published = {name for name, cls in every.items() if "none" not in cls.paper}
    assert set(_USED) == published
    text = bibtex(every)
    assert text.count("@") == 1 + len({key for keys in _USED.values() for key in keys.split()})
    assert ownview("paper", folder, "-o", folder.parent / "r.bib").code == 0
    used = (folder.parent / "r.bib").read_text()
    assert "steck2019ease" in used
    assert "chai2020fedmf" in used
    assert used.count("\n@") == 2


DOCUMENT = r"""
\documentclass{article}
\usepackage{booktabs,graphicx}
\begin{document}
\input{table.tex} \input{mine.tex} \includegraphics{curves.pdf} \nocite{*}
\bibliographystyle{plain}\bibliography{used}
\end{document}
"""


@pytest.mark.skipif(shutil.which("pdflatex") is None or shutil.which("bibtex") is None, reason="needs LaTeX and BibTeX")
def test_a_compiler_takes_table_figure_and_references(folder: Path, ownview: Callable[..., Outcome]) -> None:
    place = folder.parent / "latex"
    place.mkdir()
    (place / "paper.tex").write_text(DOCUMENT)
    for words in (("table.tex",), ("mine.tex", "--mine", "ease"), ("curves.pdf",), ("used.bib",)):
        assert ownview("paper", folder, "-o", place / words[0], *words[1:]).code == 0
    compiler = ("pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex")
    for line in (compiler, ("bibtex", "paper"), compiler, compiler):
        done = subprocess.run(line, cwd=place, capture_output=True, text=True, errors="replace", check=False)
        assert done.returncode == 0, done.stdout
        assert "Warning--" not in done.stdout
    assert (place / "paper.pdf").read_bytes().startswith(b"%PDF")


def test_words_of_every_kind_are_escaped() -> None:
    page = Canvas(100, 50)
    page.words((1, 10), "a<b & (c) \\ ε ≈ 漢")
    ElementTree.fromstring(page.svg())
    drawn = zlib.decompress(page.pdf().split(b"stream\n", 1)[1].split(b"\nendstream")[0])
    assert rb"a<b & \(c\) \\ epsilon ~ ?" in drawn
