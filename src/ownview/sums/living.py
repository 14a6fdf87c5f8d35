"""The life of a model folder: rows come, people go, settings change; every change is a new version."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ownview.base.display.amounts import counted
from ownview.base.errors import SettingError
from ownview.base.lock import sole_worker
from ownview.blends.blend import Blend
from ownview.data.interactions import Interactions
from ownview.data.unseen_items import KEPT, keep_untaken, with_kept_text
from ownview.federation.reporting import reporting
from ownview.privacy.budget import budget
from ownview.runs.files.data_copy import read_histories
from ownview.runs.files.folder import RunFolder
from ownview.runs.files.versions import drop_unused, publish, version
from ownview.runs.run import Run, experiment_of, open_run
from ownview.runs.training.setup import split_data
from ownview.seam.method import Federated
from ownview.seam.roles import RECEIVED
from ownview.seam.training import Params
from ownview.sums.additions import Additions, as_people, merge, rebuild, update
from ownview.sums.agreement import LARGE_WORLD, StoreAgreement, part_of_the_agreement, solved_afterwards, why_no_sum
from ownview.sums.histories import History, about_items, interactions, with_facts
from ownview.sums.journal import ENVIRONMENT
from ownview.sums.retraining import rounds_more, write_trained
from ownview.sums.solving import sequence, write_reweighed, write_version
from ownview.sums.store import Store
from ownview.sums.summing import Summing

SUMS = "sums"
_AHEAD, _GRID = 240 * 86_400, 120 * 86_400
"""Seconds by which clocks are set ahead, where what people add depends on them, to one moment for all stores that begin
in the same months: what fades with age fades in the same proportions, whenever it is asked."""


class Changed(NamedTuple):
    """A new version: its name, what came or went, how it was made, and how long all of it took."""

    version: str
    what: str
    how: str
    seconds: float

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return self._asdict()


def at_hand(model: Path) -> Run:
    """A model that may change.

    Raises:
        OutputError: not a finished model that was trained on everything.
        SettingError: made under a budget, so that a change would be another release.
    """
    folder = RunFolder.open(model)
    experiment = experiment_of(folder)
    if experiment.like:  # as `fit` was given it, not as the folder says it from where it is
        experiment = replace(experiment, like=str((folder.path / experiment.like).resolve()))
    run = Run(folder, experiment, folder.read_result())  # of its data sums need nothing
    if run.measured:
        raise SettingError(f"{model}: has items held out to be measured; expected a model to be used (ownview fit)")
    if isinstance(run.model or run.experiment.model(), Federated) and budget(run.experiment.federation.privacy):
        raise SettingError(
            f"{model}: was made under a budget, and every change would be another release; fit it again where the "
            "budget allows (ownview fit --privacy)"
        )
    return run


@contextmanager
def kept(model: Path, url: str | None = None) -> Iterator[tuple[Run, Store | None]]:
    """The model, for its only writer, and its store of sums, made where there is none yet; None where it trains."""
    RunFolder.open(model)  # what is no model is said before anything is locked
    with sole_worker(model):
        drop_unused(model)
        run = at_hand(model)
        if why_no_sum(run.experiment) is not None:
            yield replace(run, data=data_of(run)), None
            return
        if not (model / SUMS).is_dir():
            _create(model / SUMS, run, url or os.environ.get(ENVIRONMENT))
        with Store.writing(model / SUMS, url) as store:
            if sequence(run.folder.path) != store.journal.state().sequence:  # a kill came before the version
                publish_sums(model, run, store, anew=True)
                run = at_hand(model)
            yield run, store


def _create(folder: Path, run: Run, url: str | None) -> None:
    data = data_of(run)
    items = dict(enumerate(about_items(data)))
    ids = {where: item for where, (item, _) in items.items()}
    people = as_people(data, {item: where for where, item in ids.items()})
    agreed, rounds = _agreed(run), int(run.result["rounds"])
    model = run.model or run.experiment.model()
    enough = model.enough if isinstance(model, Federated) else 1
    order = split_data(run.experiment, data).order
    agreement = StoreAgreement(run.experiment, order, None, rounds + 1 if agreed and enough is None else rounds)
    if order == "times" and data.timestamp is not None:
        moment = -(-(int(data.timestamp.max()) + _AHEAD) // _GRID) * _GRID
        agreement = _timed(
            agreement, moment, agreed, dict([max(people.items(), key=lambda one: len(one[1].rows))]), ids
        )
    Store.create(folder, agreement, agreed, people, items, url)


def _timed(
    agreement: StoreAgreement, moment: int, agreed: Params, sample: dict[str, History], ids: Mapping[int, str]
) -> StoreAgreement:
    """With the moment, where what a person adds depends on it: else stores of any time can be merged."""
    made = set()
    for clock in (moment, moment + _GRID):
        summing = Summing.of(replace(agreement, moment=clock), agreed, len(ids))
        made.add(next(summing.digest(one) for _, one in summing.each(sample, ids)))
    return agreement if len(made) == 1 else replace(agreement, moment=moment)


def _agreed(run: Run) -> Params:
    """What clients of the model work with; nothing where they receive after they have sent."""
    model = run.model or run.experiment.model()
    if not isinstance(model, Federated):
        return {}
    client = model.client(LARGE_WORLD)
    if reporting(client).receives_after:
        return {}
    tensors = run.folder.read_tensors("model")[0]
    return {name: tensors[f"shared.{name}"] for name, one in client.params.items() if one.role is RECEIVED}


def data_of(run: Run) -> Interactions:
    """Everybody's rows: the model's own copy, or where it has none the data that it was made of."""
    data = read_histories(run.folder.path) if run.data is None else run.data
    return run.loaded().setup.data if data is None else data


def publish_sums(model: Path, run: Run, store: Store, *, anew: bool = False) -> str:
    """How it was solved."""
    made: list[str] = []
    now = store.snapshot(copied=False)
    publish(model, lambda place: made.append(write_version(place, store, now, run, anew=anew)))
    return made[0]


def offer_items(model: Path, file: Path) -> Changed:
    """Offer the items of a file that have no interactions, in lists, pages and exports from now on.

    No person's data is read, nothing is trained and nothing is released: text carries the model's scores to them
    (`parts.text.carried`). So it may be done with measured models too, and with such as were made under a budget.
    """
    begun = time.perf_counter()
    RunFolder.open(model)
    with sole_worker(model):
        run = open_run(model)
        run.loaded().offering(file)  # what is wrong is said before anything is written
        number = keep_untaken(run.loaded().split.data, model, file)
    what = f"{counted(number, 'item')} that nobody has taken yet are offered"
    return Changed(version(model), what, "by their text; nothing was trained", time.perf_counter() - begun)


def update_model(model: Path, data: Interactions, source: str, *, rounds: int | None = None,
                 url: str | None = None) -> Changed:  # fmt: skip
    """Add rows that are not there yet, and put a version with them in use; nothing changes where all are known."""
    begun, data = time.perf_counter(), with_kept_text(data, model)
    with kept(model, url) as (run, store):
        if store is None:
            came, merged = _merged(data_of(run), data, source)
            how = "nothing is new"
            if came.rows:
                found: list[str] = []
                more = rounds or rounds_more(run)
                publish(model, lambda place: found.append(write_trained(place, run, merged, more)))
                how = found[0]
        else:
            came, how = update(store, data, source), "nothing is new"
            if came.rows:
                how = publish_sums(model, run, store)
    if (model / KEPT).is_file():
        keep_untaken(data_of(open_run(model)), model)
    if store is not None and _outlived(store.agreement, data):
        how += "; its moment has passed, everybody is added up for a later one with the next change"
        with sole_worker(model):
            drop_sums(model / SUMS, url)
    return Changed(version(model), came.sentence(), how, time.perf_counter() - begun)


def _outlived(agreement: StoreAgreement, data: Interactions) -> bool:
    """Whether rows are later than what clocks are taken to say."""
    return agreement.moment is not None and data.timestamp is not None and int(data.timestamp.max()) > agreement.moment


def _merged(before: Interactions, data: Interactions, source: str) -> tuple[Additions, Interactions]:
    """Old rows and new ones, old people and items first."""
    if before.timestamp is not None and data.timestamp is None:
        raise SettingError(f"{source}: has no times, and the model's rows have; expected a column timestamp")
    items = dict(enumerate(about_items(before)))
    place = {item: where for where, (item, _) in items.items()}
    for item, about in about_items(data):
        if item not in place:
            place[item] = len(items)
            items[len(items)] = (item, about)
    people = as_people(before, place)
    old, rows, changed = len(people), 0, 0
    first = int(before.row.max()) + 1
    for name, one in as_people(data, place, first).items():
        known = people.get(name, History.empty(timed=before.timestamp is not None))
        people[name] = known.plus(one if before.timestamp is not None else one._replace(times=None))
        rows += len(people[name].places) - len(known.places)
        changed += len(people[name].places) > len(known.places)
    whole = interactions(before.name, people, items, clock=before.clock)
    new = Additions(rows, len(data) - rows, changed, len(people) - old, len(items) - before.num_items)
    return new, with_facts(whole, before, data, first)


def drop_sums(store: Path, url: str | None) -> None:
    """Remove a store whose agreed values people had made; the next update makes it from the model as it is then."""
    with Store.writing(store, url) as one:
        one.journal.drop()
    shutil.rmtree(store)


def solve_model(model: Path, settings: Mapping[str, Any], url: str | None = None) -> Changed:
    """Solve the same sums again, with other settings of the server where some are given."""
    begun = time.perf_counter()
    with kept(model, url) as (run, store):
        if store is not None:
            agreement = store.agreement.solved_with(dict(settings))
            agreement.model  # noqa: B018 - a wrong value is said before anything is written
            agreement.write(store.folder)
            store.reload()
            how = publish_sums(model, run, store)
        elif isinstance(run.experiment.model(), Blend):
            how = _reweighed(model, run, settings)
        else:
            raise SettingError(f"{model}: {why_no_sum(run.experiment)}; there are no sums to solve again")
    words = ", ".join(f"{name}={value}" for name, value in settings.items()) or "the same settings"
    return Changed(version(model), f"solved with {words}", how, time.perf_counter() - begun)


def _reweighed(model: Path, run: Run, settings: Mapping[str, Any]) -> str:
    """A blend with other weights: its parts stay as they are."""
    fixed = [name for name in settings if name not in solved_afterwards(run.experiment)]
    if fixed:
        raise part_of_the_agreement(fixed[0], run.experiment)
    begun, data = time.perf_counter(), data_of(run)
    experiment = replace(run.experiment, settings={**run.experiment.settings, **settings})
    publish(model, lambda place: write_reweighed(place, run, experiment, data))
    return f"the same parts; lists of {data.num_users:,} people in {time.perf_counter() - begun:.2f} s"


def merge_model(model: Path, other: Path, url: str | None = None, other_url: str | None = None) -> Changed:
    """Add another model's sums and people to a model's."""
    begun = time.perf_counter()
    with kept(other, other_url) as (_, theirs):
        if theirs is None:
            raise SettingError(f"{other}: is not made of sums; train one model on both files instead")
    with kept(model, url) as (run, store), Store.reading(other / SUMS, other_url) as theirs:
        if store is None:
            raise SettingError(f"{model}: is not made of sums; train one model on both files instead")
        came = merge(store, theirs.snapshot(), theirs)
        how = publish_sums(model, run, store)
    return Changed(version(model), came.sentence(), how, time.perf_counter() - begun)


def rebuild_model(model: Path, url: str | None = None) -> Changed:
    """Add everybody up once more, and solve."""
    begun = time.perf_counter()
    with kept(model, url) as (run, store):
        if store is None:
            raise SettingError(f"{model}: is not made of sums; there is nothing to add up")
        number = rebuild(store)
        how = publish_sums(model, run, store, anew=True)
    return Changed(version(model), f"{number:,} people added up once more", how, time.perf_counter() - begun)
