"""The steps of a start: each is a command of its own, and each is done once, however often the start is begun."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ownview.base.errors import SettingError, TrainingError
from ownview.base.files import write_json, write_text, writing
from ownview.base.lock import sole_worker
from ownview.data.interactions import Interactions
from ownview.data.splitting.splits import Split
from ownview.engine.machine import free_memory
from ownview.evaluation.findings import Finding
from ownview.evaluation.probes import MOST_USERS, audit
from ownview.evaluation.protocol import Protocol
from ownview.federation.options import FederationOptions
from ownview.pages.page import ENOUGH_ALIKE, MEGABYTES, Page, page
from ownview.privacy.budget import budget as budget_asked
from ownview.registry import build
from ownview.reports.gather import gather, render
from ownview.runs.batch import OnRunRound, Task, run_all
from ownview.runs.experiment import Experiment
from ownview.runs.files.folder import RunFolder
from ownview.runs.files.versions import in_use
from ownview.runs.findings.audits import findings_of, keep_findings
from ownview.runs.findings.exposure import LIAR, UPLOAD, exposures
from ownview.runs.full_fit import fit_like, fit_of
from ownview.runs.run import OnRound, Run, experiment_of, open_run, resume, run
from ownview.runs.summaries.frames import write_frame
from ownview.runs.table import Comparison
from ownview.start.costs import Speed
from ownview.start.folder import ATTACK, AUDIT, FIT, LISTS, PAGE, REPORT, StartFolder
from ownview.start.interruption import GO_ON
from ownview.start.private import People, Recommended, private_ways, recommended, rows_of
from ownview.start.question import Question, choose_question
from ownview.start.suited import Allowance, Selection, Suited, fitting, suited
from ownview.start.verdict import Verdict, judge

_CHOSEN_BY = "NDCG@10"
_COMPARED = 0.8
"""Share of the time that comparing and fitting may be planned to take: the rest is reading, auditing and writing."""

_PROBED, _FEWEST_PROBED = 2 * 10**7, 200
"""Scores or draws that a probe of the audit makes, and people whom it asks at least."""

_DRAWS = 400
"""Of the leak probe for each training row: four negatives in a hundred rounds."""

_HELD = 0.5
"""Share of the free memory that a method may be planned to hold."""


@dataclass
class Steps:
    """Everything between a file and a page.

    Args:
        folder: that everything goes into.
        data: of the file.
        question: that is asked of it.
        selection: of methods that suit it.
        memory: what training may take.
        minutes: that everything may take; what has begun is not stopped.
        failures: by method, why it is not in the comparison.
        findings: of the audit.
        runs: of the comparison, once it was made.
        table: of them.
        people: where ways to be private are compared, what the rule goes by; else None.
    """

    folder: StartFolder
    data: Interactions
    question: Question
    selection: Selection
    memory: str = "auto"
    minutes: float = 15.0
    failures: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    table: Comparison | None = None
    people: People | None = None

    @property
    def split(self) -> Split:
        """Split that the question asks for."""
        return self.question.split

    @classmethod
    def of(
        cls,
        folder: StartFolder,
        methods: Sequence[str],
        memory: str = "auto",
        wanted: Protocol | None = None,
        minutes: float = 15.0,
        *,
        private: bool = False,
    ) -> Steps:
        """Read the file and choose; nothing is written where a method is unknown or the data cannot be asked."""
        for name in methods:
            build(name, {})
        data = folder.open()
        question = choose_question(data, wanted)
        folder.keep(data)
        asked: dict[str, Any] = {"methods": list(dict.fromkeys(methods)), "minutes": minutes}
        people = None
        if private:
            asked["private"] = True
            # Under a budget every release is made, and none is chosen by held-out interactions.
            last = replace(question.protocol, name=f"{question.protocol.name}-last", selection="last")
            question = replace(question, protocol=last)
            people = People.of(data, ordered=question.split.order != "none")
        selection = folder.planned(asked) or _plan(folder, question.split, asked, people)
        return cls(folder, data, question, selection, memory, minutes, people=people)

    def expected(self) -> dict[str, float]:
        """Seconds by part of the work, in order: the audit, every run by the name of its folder, and what follows."""
        runs = {one.place: one.seconds for one in self.selection.methods}
        ranked = min(runs.values(), default=0.0)
        fitted = max(runs.values(), default=0.0)
        return {AUDIT: 10.0, **runs, ATTACK: 5.0, FIT: fitted, LISTS: ranked, REPORT: 3.0, PAGE: 10.0}

    def audit(self, done: Callable[[str], None]) -> list[Finding]:
        """What the question gives away on this data, by so many people that it takes seconds."""
        split = self.split
        # A person costs a row of scores, or as many draws as training makes for it.
        each = max(split.num_items, _DRAWS * len(split.train.values) // split.num_users)
        most = min(max(_PROBED // each, _FEWEST_PROBED), MOST_USERS)
        self.findings = audit(split, self.question.protocol, most_users=most, most_ranked=most, done=done)
        return self.findings

    def tasks(self) -> list[Task]:
        """A run a method."""
        made = []
        for one in self.selection.methods:
            experiment = Experiment(
                one.method,
                data=str(self.folder.data.resolve()),
                settings=one.settings,
                rounds=one.rounds,
                measure_every=one.measured,
                protocol=self.question.protocol,
                federation=FederationOptions(privacy=one.privacy),
            )
            experiment.model()
            made.append((experiment, self.folder.runs / one.place))
        return made

    def compare(
        self,
        tasks: Sequence[Task],
        jobs: int,
        on_round: OnRunRound,
        on_begin: Callable[[str], None] = lambda name: None,
    ) -> Comparison:
        """Train and measure what suits; a method that cannot be trained here is left out, and says why."""

        def failed(folder: Path, reason: str) -> None:
            self.failures[folder.name] = reason

        def trained(some: Sequence[Task]) -> Sequence[Run]:
            return run_all(
                some, jobs=jobs, memory=self.memory, data_dir=None, on_round=on_round, on_failure=failed, go_on=GO_ON
            )

        runs: list[Run] = []
        end = time.monotonic() + 60 * _COMPARED * self.minutes
        for some in [tasks] if jobs > 1 else [[one] for one in tasks]:
            folder = some[0][1]
            if runs and time.monotonic() > end and not RunFolder(folder).begun:
                failed(folder, f"the time was up before it began (--minutes {self.minutes:g})")
                continue
            on_begin(folder.name)
            runs += trained(some)
        if not runs:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in self.failures.items())
            raise TrainingError(f"no method could be trained: {reasons}")
        keep_findings(runs, self.findings)
        self.runs = runs
        self.table = Comparison.of(runs, findings_of(runs))
        return self.table

    def best(self, tasks: Sequence[Task]) -> Run:
        """The run with the highest NDCG@10 on validation, the first among equals; or the recommended private way's."""
        if (choice := self.recommended()) is not None:
            return self.ways()[choice.way]
        runs = [open_run(folder) for _, folder in tasks if folder.name not in self.failures]
        return max(runs, key=lambda one: float(one.result["validation"][_CHOSEN_BY]))

    def ways(self) -> dict[str, Run]:
        """By way to be private, its run."""
        return rows_of(self.runs, self.selection)

    def recommended(self) -> Recommended | None:
        """The way to be private that the rule recommends; None where none is asked for."""
        if self.people is None:
            return None
        if not (ways := self.ways()):
            raise TrainingError(f"no way to be private is left: {'; '.join(self.selection.left_out)}")
        return recommended(self.people, ways)

    def exposure(self, best: Run) -> list[Finding]:
        """What one upload gives away to the server, and what one lying client reaches, as far as it can be tried."""
        found = (exposures([best], probe=True, what=what).get(best.experiment.label()) for what in (UPLOAD, LIAR))
        return [one for one in found if one is not None]

    def earlier_model(self, best: Run) -> str | None:
        """What tables call the model that an earlier start left here, where it is another than is wanted now."""
        if not RunFolder(in_use(self.folder.model)).begun:
            return None
        there = experiment_of(RunFolder.open(self.folder.model))
        named = [one.identity() | {"data": one.data_label()} for one in (there, _fitted(best))]
        return None if named[0] == named[1] else there.label()

    def fit(self, best: Run, on_round: OnRound) -> Run:
        """The best method trained on everything; goes on where it was stopped. Another model gives way to it."""
        place = self.folder.model
        if self.earlier_model(best) is not None:
            with sole_worker(place), writing(place):
                aside = place.with_name(f"{place.name}.replaced")
                shutil.rmtree(aside, ignore_errors=True)  # of a start that was killed here
                place.rename(aside)
                shutil.rmtree(aside)
        if RunFolder(in_use(place)).begun:
            return resume(place, memory=self.memory, on_round=on_round)
        return run(_fitted(best), out=place, memory=self.memory, on_round=on_round, hand_on=True)

    def lists(self, model: Run, k: int) -> int:
        """k items for everybody, as a file; the number of users."""
        frame = model.recommend_many(None, k)
        write_frame(frame, self.folder.lists)
        return int(frame["user"].n_unique())

    def verdict(self, best: Run, model: Run) -> Verdict:
        """What came out, in sentences; kept as verdict.json."""
        assert self.table is not None
        words = {one.place: one.words for one in self.selection.methods}.get(best.folder.path.name)
        words = words or best.experiment.model().summary
        choice = self.recommended()
        found = judge(self.question, self.runs, self.table, best, model, words, by_figures=choice is None)
        if choice is not None:
            reasons = [f"{one[0].upper()}{one[1:]}." for one in choice.reasons]
            found = replace(found, sentences=(*found.sentences, *reasons), numbers={**found.numbers, "way": choice.way})
        write_json(self.folder.verdict, found.to_dict())
        return found

    def report(self, verdict: Verdict) -> None:
        """The comparison as a page that begins with the verdict."""
        folders = [path for path in sorted(self.folder.runs.iterdir()) if RunFolder(path).finished]
        write_text(self.folder.report, render(gather(folders, title=self.data.name, verdict=verdict.sentences)))

    def page(self, model: Run) -> Page | str:
        """The page for people, or why this model has none; one of twice the size where too many weights are missing."""
        try:
            made = page(model, self.folder.page, megabytes=MEGABYTES, force=True)
            budgeted = made.exposure.min_people is None  # nothing is measured against histories there
            if made.kept < 1 and made.fidelity.overlap < ENOUGH_ALIKE and not budgeted:
                made = page(model, self.folder.page, megabytes=2 * MEGABYTES, force=True)
            return made
        except SettingError as error:
            return str(error)


def _fitted(best: Run) -> Experiment:
    """The experiment that trains on everything; under a budget nothing is taken over from figures."""
    if budget_asked(best.experiment.federation.privacy) is None:
        return fit_like(best.folder.path)
    return fit_of(best.experiment, None)


def _plan(folder: StartFolder, split: Split, asked: dict[str, Any], people: People | None) -> Selection:
    """Methods that were named, or that suit the data and fit the time, or ways to be private; kept to go on by."""
    allowance = Allowance(60 * _COMPARED * asked["minutes"], _HELD * free_memory(), Speed.measured())
    chosen = suited(split, allowance)
    if asked["methods"]:
        known = {one.method: one for one in suited(split).methods}
        named = [known.get(name, Suited(name, rounds=40)) for name in asked["methods"]]
        chosen = Selection(tuple(replace(one, seconds=allowance.cost(one, split).seconds) for one in named), ())
    if people is not None:
        chosen = fitting(private_ways(people), split, allowance)
    folder.keep_plan(asked, chosen)
    return chosen
