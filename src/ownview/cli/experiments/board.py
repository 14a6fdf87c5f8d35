"""`ownview board`: sign a run's result, verify a signed one, make one page of many."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ownview.base.display.shown import one_line
from ownview.base.errors import OutputError, OwnviewError, SettingError
from ownview.base.files import write_text
from ownview.cli.options import DataDir, Memory
from ownview.cli.trusting import Trust
from ownview.runs.verifying import DIFFERS, UNKNOWN
from ownview.studies.board import Signed, again, page, read_signed, require_known, sign
from ownview.studies.signing_keys import known_keys


class DiffersError(OwnviewError):
    """A signed figure does not come out again."""

    exit_code = 1


def command(
    what: Annotated[str, typer.Argument(help="sign, verify or page.")],
    paths: Annotated[
        list[Path], typer.Argument(help="sign: a run's folder. verify, page: result files, or folders of them.")
    ],
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="sign: the file. page: the page, board.html if not given.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="sign: an Ed25519 private key (PEM); made where it is not there.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="sign: who signs, as the board shows it.")] = "",
    keys: Annotated[
        Path | None,
        typer.Option("--keys", help="verify, page: known public keys, KEY NAME a line; refuse files by others."),
    ] = None,
    title: Annotated[str, typer.Option("--title", help="Of the page.")] = "Board",
    run_again: Annotated[bool, typer.Option("--again", help="verify: carry it out once more and compare.")] = False,
    memory: Memory = "auto",
    data_dir: DataDir = None,
    trust: Trust = False,
) -> None:
    """Sign results, verify signed ones, and make one page of many: a board on which every row can be run again."""
    if what == "sign":
        if key is None or not name or len(paths) != 1:
            raise SettingError("board sign RUN: expected one run, --key FILE and --name NAME")
        typer.echo(str(sign(paths[0], key, name, out or Path(f"{paths[0].resolve().name}.result.json"))))
    elif what == "page":
        target = out or Path("board.html")
        if target.exists():
            raise OutputError(f"{target}: already exists; choose another --out")
        signed = _read(paths, keys)
        write_text(target, page(signed, title))
        typer.echo(f"{target}: {len(signed)} results")
    elif what == "verify":
        _verify(_read(paths, keys), data_dir, memory, run_again=run_again)
    else:
        raise SettingError(f"board {what}: expected sign, verify or page")


def _read(paths: list[Path], keys: Path | None) -> list[Signed]:
    """Signed files, those in folders included, all of keys that are known where a file says which are."""
    files = [one for path in paths for one in (sorted(path.glob("*.json")) if path.is_dir() else [path])]
    if not files:
        raise OutputError(f"{paths[0]}: holds no result files")
    signed = [read_signed(one) for one in files]
    if keys is not None:
        known = known_keys(keys)
        for one in signed:
            require_known(one, known)
    return signed


def _verify(signed: list[Signed], data_dir: Path | None, memory: str, *, run_again: bool) -> None:
    wrong = []
    for one in signed:
        # A name with line ends could pass for what is said here about the file.
        typer.echo(f"{one.path}: signed by {one_line(one.signer)}, key {one.key}")
        if run_again:
            found = again(one, data_dir, memory)
            typer.echo(f"{one.path}: {'cannot tell: ' if found.found == UNKNOWN else ''}{found.sentence}")
            wrong += [str(one.path)] if found.found == DIFFERS else []
    if wrong:
        raise DiffersError(f"{', '.join(wrong)}: does not come out again")
