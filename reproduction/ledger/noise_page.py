"""Published tables with noise as pages show them: the paper's figure, the one here, and what one upload gives away.

Tables stand between markers in files written by hand:

<!-- noise:pfedrec -->
(every table of the paper that has rows with noise; noise:own/ml-100k is each paper's own system on one dataset)
<!-- end of noise -->
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ownview.base.errors import OutputError, suggestion
from ownview.runs.table import grouped, table_lines
from reproduction.ledger.lines import Line, Verdict
from reproduction.ledger.page import printed
from reproduction.ledger.record import Entry
from reproduction.ledger.rows import BARE, LedgerRow, without_noise
from reproduction.ledger.uploads import CLIENTS, LATER, SEED, UploadRecord

OWN = "own"
"""Instead of a paper: the own system of every one of them."""

NOT_RUN = "not run"
_NOTHING = "-"
_ACCURACY = ("HR@10", "NDCG@10")
_BLOCK = re.compile(r"(<!-- noise:(?P<paper>[\w-]+)(?:/(?P<data>[\w.-]+))? -->\n).*?(<!-- end of noise -->)", re.DOTALL)
_HEADS = (
    *("noise", "published", "here", "one upload: precision / recall", "at k", "AUC (control)"),
    *(f"AUC, round {LATER} (control)", "ε of one round"),
)


@dataclass(frozen=True)
class NoiseLine:
    """A row of a table with noise, or the row without noise that it is to be held against.

    Args:
        noisy: the row with noise, which says where the line stands.
        lines: figures by metric, of the row itself.
        name: of its setting, under which attacks are recorded.
        noise: in words.
    """

    noisy: LedgerRow
    lines: Mapping[str, Line]
    name: str
    noise: str

    @property
    def method(self) -> str:
        """As the paper calls it, without the noise."""
        return self.noisy.one.method.partition("+")[0]

    def cells(self, uploads: UploadRecord) -> list[str]:
        """What stands below `_HEADS`."""
        first, later = (uploads.attacks.get((self.name, number)) for number in (1, LATER))
        absent = _NOTHING if self._verdict is Verdict.NO_DATA else NOT_RUN
        claimed = "{precision:.2f} / {recall:.2f}"
        return [
            self.noise, self._published, self._here,
            absent if first is None else claimed.format_map(first["values"]),
            absent if first is None else f"{first['values']['precision at k']:.2f}",
            _auc(first, absent), _auc(later, absent), _epsilon(first),
        ]  # fmt: skip

    @property
    def _verdict(self) -> Verdict | None:
        return next((one.verdict for one in self.lines.values()), None)

    @property
    def _published(self) -> str:
        known = [printed(self.lines[metric].figure.value, metric) for metric in _ACCURACY if metric in self.lines]
        return " / ".join(known) or _NOTHING

    @property
    def _here(self) -> str:
        found = [line.here for metric in _ACCURACY if (line := self.lines.get(metric)) and line.here is not None]
        if not found:
            return NOT_RUN if self._verdict in (None, Verdict.NOT_RUN) else str(self._verdict)
        return " / ".join(f"{one.over.mean:.3f}" for one in found) + f" ({len(found[0].by_seed)})"


def noise_lines(found: Iterable[Line]) -> list[NoiseLine]:
    """Rows with noise in the order of the papers, each group of one setting led by its row without.

    Args:
        found: every published figure.
    """
    by_row = grouped((id(line.row), line) for line in found)
    every = [(lines[0].row, {line.figure.metric: line for line in lines}) for lines in by_row.values()]
    plain = {(row.one.paper, row.here.name): lines for row, lines in every if row.main and row.here is not None}
    made: list[NoiseLine] = []
    led: set[tuple[str, str, str]] = set()
    for row, lines in every:
        if not row.noise or row.here is None:
            continue
        bare = without_noise()[row.here.name].name
        place = row.one.paper, row.one.table, bare
        if place not in led:
            led.add(place)
            made.append(NoiseLine(row, plain.get((row.one.paper, bare), {}), bare, BARE))
        made.append(NoiseLine(row, lines, row.here.name, in_words(row.noise)))
    return _together(made)


def _together(lines: Sequence[NoiseLine]) -> list[NoiseLine]:
    """Lines of one table, dataset and method after one another: the papers list scale by scale."""
    places = grouped(((one.noisy.one.paper, one.noisy.one.table, one.noisy.one.data, one.method), one) for one in lines)
    order = grouped(((paper, table), place) for place in places for paper, table in [place[:2]])
    return [one for group in order.values() for place in group for one in places[place]]


def in_words(privacy: str) -> str:
    """laplace:0.1 as Laplace 0.1; gaussian:clip=0.1,noise=1 as Gaussian, clip 0.1, z 1."""
    kind, _, values = privacy.partition(":")
    if "=" not in values:
        return f"{kind.capitalize()} {values}"
    said = values.replace("noise=", "z ").replace("=", " ").replace(",", ", ")
    return f"{kind.capitalize()}, {said}"


def with_noise_tables(text: str, lines: Sequence[NoiseLine], uploads: UploadRecord, source: str) -> str:
    """The text with the tables that its markers name; `source` names it in errors."""
    papers = {one.noisy.one.paper.lower(): one.noisy.one.paper for one in lines}

    def block(found: re.Match[str]) -> str:
        paper, data = found["paper"], found["data"]
        if paper != OWN and paper not in papers:
            raise OutputError(f"{source}: noise:{paper}: no such tables{suggestion(paper, [*papers, OWN])}")
        known = dict.fromkeys(one.noisy.one.data for one in lines)
        if data is not None and data not in known:
            raise OutputError(f"{source}: noise:{paper}/{data}: no such data{suggestion(data, known)}")
        mine = [one for one in lines if data in (None, one.noisy.one.data)]
        made = (
            _own(mine, uploads)
            if paper == OWN
            else _of_paper([one for one in mine if _is(one, papers[paper])], uploads)
        )
        return "\n".join([found[1], *made, "", found[4]])

    made, number = _BLOCK.subn(block, text)
    if not number:
        raise OutputError(
            f"{source}: expected lines <!-- noise:PAPER --> (or noise:own/DATA) and <!-- end of noise -->"
        )
    return made


def _is(one: NoiseLine, paper: str) -> bool:
    return one.noisy.one.paper == paper


def _of_paper(lines: Sequence[NoiseLine], uploads: UploadRecord) -> list[str]:
    """One Markdown table a published table."""
    made: list[str] = []
    for number, mine in grouped((one.noisy.one.number, one) for one in lines).items():
        several = len({one.method for one in mine}) > 1
        heads = ["data", *(["method"] * several), *_HEADS]
        rows = [[one.noisy.one.data, *([one.method] * several), *one.cells(uploads)] for one in mine]
        title = f"Tables {number.replace('-', ' and ')}" if "-" in number else f"Table {number}"
        made += [f"{mine[0].noisy.one.paper}, {title}:", "", *table_lines(heads, rows), ""]
    return [*made, _sources(lines, uploads)]


def _own(lines: Sequence[NoiseLine], uploads: UploadRecord) -> list[str]:
    """One table of every paper's own system; a setting that two tables have stands there once, scales ascend."""
    own = {one.name: one for one in lines if _is(one, one.method)}
    by_method = grouped((one.method, one) for one in own.values())
    ordered = [
        one for mine in by_method.values() for one in sorted(mine, key=lambda one: (one.noise != BARE, one.noise))
    ]
    rows = [[one.method, *one.cells(uploads)] for one in ordered]
    return [*table_lines(["method", *_HEADS], rows), "", _sources(ordered, uploads)]


def _sources(lines: Sequence[NoiseLine], uploads: UploadRecord) -> str:
    names = {one.name for one in lines if one.cells(uploads)[3] != _NOTHING}
    attacked = [one for (name, _), one in sorted(uploads.attacks.items()) if name in names]
    done = {one["row"] for one in attacked if one["round"] == 1}
    revisions = dict.fromkeys(str(one["provenance"]["revision"]) for one in attacked)
    said = f"Uploads of {len(done)} of {len(names)} settings have been attacked: {CLIENTS} users, seed {SEED}"
    return f"{said}; revision {', '.join(revisions)}." if attacked else f"{said}."


def _auc(found: Entry | None, absent: str) -> str:
    return absent if found is None else "{AUC:.2f} ({shuffled AUC:.2f})".format_map(found["values"])


def _epsilon(found: Entry | None) -> str:
    known = None if found is None else found.get("epsilon_of_median_user")
    return _NOTHING if known is None else f"{known:,.0f}"
