"""Lines that are added to a file one by one."""

from __future__ import annotations

from pathlib import Path

from ownview.base.files import append_line


def test_a_line_that_was_cut_short_does_not_take_the_next_one_with_it(tmp_path: Path) -> None:
    file = tmp_path / "releases.jsonl"
    for begun in ('{"round": 1}\n{"rou', '{"round": 1}\n', "x", ""):
        file.write_text(begun)
        append_line(file, '{"round": 2}')
        append_line(file, '{"round": 3}')
        assert file.read_text().splitlines() == [*begun.splitlines(), '{"round": 2}', '{"round": 3}']
