"""Users whose lists a reader can judge, where a whole sitting is right."""

from __future__ import annotations

from pathlib import Path

from ownview.evaluation.named_protocols import NEXT_SITTING
from ownview.reports.gather import gather
from ownview.reports.reading import find_runs
from ownview.runs.run import open_run
from tests.reports.worlds import make_sittings


def test_a_person_has_every_right_answer_and_every_hit_is_marked(tmp_path: Path) -> None:
    folder = make_sittings(tmp_path)
    [data] = gather(find_runs([folder]), title="sittings")["datasets"]
    done = open_run(folder / "popularity")
    users = done.folder.read_users()
    right = dict(zip(users["user"], (held.split(";") for held in users["held_out"]), strict=True))
    people, hits = data["people"][NEXT_SITTING.name], 0
    assert len(people) >= 20
    for person in people:
        answers = [data["titles"][place] for place in person["test"]]
        assert sorted(answers) == sorted(right[person["user"]])
        for recommended in person["lists"].values():
            marked = [place for place, hit in recommended if hit]
            assert marked == [place for place, _ in recommended if place in person["test"]]
            hits += len(marked)
    assert hits > 0
    assert max(len(person["test"]) for person in people) > 1
