"""One HTML file that recommends by itself: a person picks titles, and the page scores without any request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ownview.base.arguments import kinds_checked
from ownview.base.errors import OutputError, SettingError
from ownview.base.files import write_text
from ownview.base.offline_page import as_script, offline_page
from ownview.data.interactions import IntArray
from ownview.pages.contributing import Contributing
from ownview.pages.encoding import encode
from ownview.pages.fidelity import Fidelity
from ownview.pages.leaving_out import MIN_PEOPLE
from ownview.pages.links import links_of
from ownview.pages.opening import opened
from ownview.pages.published import Exposure, Published
from ownview.pages.typed_titles import vocabulary
from ownview.runs.run import Run

MEGABYTES = 5.0
"""Of the whole file by default."""

TEXT_SHARE = 0.2
"""Of the file that the words of items take at most; without them only listed titles can be picked."""

HEADING = "What you may like next"
"""Of a page whose maker gives none."""

ENOUGH_ALIKE = 0.95
"""Share of the full model's top ten below which the maker is warned."""

SCRIPTS = ("decode.js", "score.js", "search.js", "typed.js", "view.js", "app.js")
"""In the order in which they are put together; each only uses what comes before it."""


CONTRIBUTE = "contribute.js"


class Page(NamedTuple):
    """A page that was made.

    path:      of the file
    bytes:     its size
    kept:      share of the model's weights in it
    agreement: with the full model
    exposure:  what was left out, and what the weights give away all the same
    left_out:  what the model does besides, in sentences
    titled:    whether items have titles, and not their ids alone
    whole:     agreement if nothing were left out because few people had it, where that is what is missing; else None
    lost:      which links, pictures and words are left out, in sentences
    """

    path: Path
    bytes: int
    kept: float
    fidelity: Fidelity
    exposure: Exposure
    left_out: tuple[str, ...]
    titled: bool
    lost: tuple[str, ...] = ()
    whole: float | None = None

    def warnings(self) -> list[str]:
        """What its maker should know before publishing it."""
        sentences = []
        if not self.titled:
            sentences.append("items have no titles: people see ids and can hardly search; a column title gives them")
        if self.fidelity.overlap < ENOUGH_ALIKE:
            sentences.append(f"{self.fidelity.sentence()}: less than {100 * ENOUGH_ALIKE:.0f} %; {self._missing()}")
        return [*sentences, *self.lost]

    def _missing(self) -> str:
        """What the page lacks of the model, and how it would have it."""
        if self.kept < 1:
            return "--megabytes makes room for more of its weights"
        if self.whole is None:
            return "the model does more than a page can"
        return (
            "what fewer people had is left out, so that it shows nothing of single ones; ownview page --min-people 1 "
            f"leaves it in, for {100 * self.whole:.1f} %"
        )


@kinds_checked()
def page(
    run: Run | str | Path,
    out: str | Path = "page.html",
    *,
    title: str = "",
    megabytes: float = MEGABYTES,
    min_people: int = MIN_PEOPLE,
    force: bool = False,
    data_dir: Path | None = None,
    new_items: Path | None = None,
    contribute: str | None = None,
) -> Page:
    """Write the page of a finished model, whole or not at all.

    Args:
        run: a run, its folder, or the server's folder of a deployment.
        out: the file.
        title: of the page; `HEADING` without one: a file's name says nothing to people.
        megabytes: the file has at most; where the model's weights do not fit the strongest are taken.
        min_people: items that fewer people had are left out; 1 leaves nothing out.
        force: whether an existing file is overwritten.
        data_dir: where datasets are.
        new_items: a file of items; those without interactions are offered too, marked as new.
        contribute: address of one of two servers of shares (`ownview sums serve`): the page has a panel that sends with
            its reader's leave, not before; None for a page that makes no request, ever.

    Raises:
        SettingError: the model has no form that a page could score with, or does not fit; says why.
    """
    path = Path(out)
    if path.is_dir():
        raise OutputError(f"{path}: is a folder; expected a file such as {path / 'page.html'}")
    if path.exists() and not force:
        raise OutputError(f"{path}: already exists; choose another --out, or overwrite it with --force")
    if not 0 < megabytes <= 1000:
        raise SettingError(f"setting megabytes={megabytes:g}: expected a number above 0 and at most 1000")
    joining = None if contribute is None else Contributing.at(contribute)
    model = opened(run, data_dir, new_items)
    made = _made(Published(model, min_people), title, round(megabytes * 1e6), joining)
    model.charge()
    write_text(path, made.text)
    details = made.fidelity, made.exposure, model.form.left_out, model.titled, made.lost, made.whole
    return Page(path, path.stat().st_size, made.kept, *details)


class _Made(NamedTuple):
    text: str
    kept: float
    fidelity: Fidelity
    exposure: Exposure
    lost: tuple[str, ...]
    whole: float | None


def _made(published: Published, title: str, limit: int, joining: Contributing | None) -> _Made:
    facts = published.model.facts()
    seen = published.known
    links = links_of(published.model.about, [published.positions[one] for one in seen], limit)
    text = vocabulary(published.model.about, published.left.kept.tolist())
    lost = links.notes
    if len(as_script({"text": text})) > TEXT_SHARE * limit:
        text, lost = None, (*lost, "the items' words take too much room: titles that are not listed cannot be typed in")
    model: dict[str, Any] = {
        "title": title or HEADING,
        "ids": [str(one) for one in published.ids],
        "titles": published.titles,
        "known": seen.tolist(),
        "fresh": len(published.ids) - len(published.left.kept),
        "about": facts,
        "text": text,
    } | {name: _by_place(every, seen) for name, every in links.plain().items()}
    if joining is not None:
        model["contribute"] = joining.model()
    spare = 3_000  # what is said of agreement and exposure, which are measured last
    room = limit - len(render(model, joining).encode()) - spare
    encoded = encode(published.offered, room)
    agreed, exposed = published.fidelity(encoded.form), published.exposure(encoded.form)
    model["form"] = encoded.plain
    model["about"] |= {
        "agreement": published.agreement_of(agreed),
        "kept": encoded.kept,
        "exposure": exposed.sentences(),
    }
    return _Made(
        render(model, joining), encoded.kept, agreed, exposed, lost, _whole(published, agreed, encoded.kept, room)
    )


def _whole(published: Published, agreed: Fidelity, kept: float, room: int) -> float | None:
    """Agreement without what is left out because few people had it, where that alone costs too much of it."""
    hidden = published.left.items or published.left.pairs
    if not hidden or kept < 1 or agreed.overlap >= ENOUGH_ALIKE:
        return None
    everything = Published(published.model, 1)
    return everything.fidelity(encode(everything.offered, room).form).overlap


def _by_place(values: Sequence[str], places: IntArray) -> list[str]:
    """Values that come in the order of some places, in the order of all items."""
    found = [""] * len(values)
    for place, value in zip(places.tolist(), values, strict=True):
        found[place] = value
    return found


def render(model: Mapping[str, Any], joining: Contributing | None = None) -> str:
    """The page as text."""
    if joining is None:
        return offline_page("ownview.pages", SCRIPTS, str(model["title"]), model)
    return offline_page("ownview.pages", (*SCRIPTS, CONTRIBUTE), str(model["title"]), model, joining.reach)
