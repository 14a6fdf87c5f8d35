"""What reaches a terminal, whatever it is: no steering, no encoding too small, no full disk without a word."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from reproduction.commands.main import COMMANDS as REPRODUCTION

from ownview.base.display.shown import one_line, shown, shown_json
from ownview.cli.main import COMMANDS
from tests.apart import Apart
from tests.outcome import Outcome

ESCAPE = "\x1b]0;owned\x07\x1b[2J"
STEERING = "\x00\x07\x08\x1b\x7f\x9b\u202e\u2028\ud800"


class TestShown:
    def test_what_steers_is_spelt_out(self) -> None:
        assert shown("a\x1b[31mb") == "a\\x1b[31mb"
        assert not any(mark in shown(STEERING) for mark in STEERING)
        assert shown("née — 東京\ttab\nline") == "née — 東京\ttab\nline"

    def test_one_line_is_one_line(self) -> None:
        assert one_line(" a\n  b\r\nc\x85d\te") == "a b c d e"

    def test_json_stays_the_same_json(self) -> None:
        import json

        value = {"title": f"x{STEERING}y"}
        text = shown_json(json.dumps(value, ensure_ascii=False))
        assert json.loads(text) == value
        assert text.isascii()


def assert_harmless(outcome: Outcome) -> None:
    for text in (outcome.out, outcome.err):
        assert not {*text} & {*STEERING}, text


def test_escape_sequences_in_titles_ids_headers_and_errors_are_spelt_out(
    here: Path, ownview: Callable[..., Outcome]
) -> None:
    rows = "".join(f"u{ESCAPE}{user},i{ESCAPE}{item},{item}\n" for user in range(5) for item in range(8))
    Path("evil.csv").write_text("user,item,timestamp\n" + rows)
    Path("titles.csv").write_text("item,title\n" + "".join(f"i{ESCAPE}{item},T{ESCAPE}{item}\n" for item in range(8)))
    seen = [
        ownview("data", "import", "evil.csv", "--name", "evil", "--titles", "titles.csv", "--data-dir", here),
        ownview("run", "popularity", "--data", "evil.csv", "--out", "evil-run"),
        ownview("recommend", "evil-run", "--user", f"u{ESCAPE}0"),
        ownview("recommend", "evil-run", "--user", f"u{ESCAPE}0", "--json"),
        ownview("run", "popularity", "--data", "evil", "--data-dir", here, "--out", "titled"),
        ownview("recommend", "titled", "--user", f"u{ESCAPE}0", "--data-dir", here),
        ownview("recommend", "evil-run", "--user", "nobody"),
        ownview("data", "describe", "evil.csv", "--columns", "user=x,item=y"),
    ]
    assert [outcome.code for outcome in seen] == [0, 0, 0, 0, 0, 0, 2, 2]
    assert "T\\x1b]0;owned\\x07\\x1b[2J" in seen[5].out
    Path("evil.csv").write_text(f"us{ESCAPE},item\na,b\n")
    seen += [
        ownview("data", "describe", "evil.csv"),
        ownview("run", f"no{ESCAPE}method"),
        ownview(f"no{ESCAPE}command"),
        ownview("run", f"--no{ESCAPE}option"),
        ownview("run", "fedmf", "--data", f"no{ESCAPE}file.csv"),
    ]
    for outcome in seen:
        assert_harmless(outcome)


def test_an_encoding_without_the_characters_is_no_reason_to_fail(ownview: Callable[..., Outcome]) -> None:
    Path("titles.csv").write_text("item,title\n" + "".join(f"i{item},Žluťoučký {item}\n" for item in range(60)))
    arguments = ("data", "import", "world.csv", "--name", "mine", "--titles", "titles.csv")
    assert ownview(*arguments).code == 0
    assert ownview("run", "popularity", "--data", "mine", "--out", "r").code == 0
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    done = Apart("recommend", "r", "--user", "u1", environment=ascii_only)
    assert (done.wait(), done.said()) == (0, "")
    assert "\\u017dlu\\u0165ou\\u010dk\\xfd" in done.printed()
    failed = Apart("recommend", "r", "--user", "ž", environment=ascii_only)
    assert failed.wait() == 2
    assert failed.said().startswith("ownview: unknown user of mine '\\u017e'")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["data", "ls"], ["data", "ls", "--json"]], ids=str)
def test_a_full_disk_behind_the_output_is_one_line(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = Apart(*arguments, out=full.fileno())
    assert done.wait() == 2
    assert done.said() == "ownview: input or output: No space left on device; make room or choose another place\n"


def test_a_reader_who_has_had_enough_hears_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = Apart("data", "ls", out=writing)
    os.close(writing)
    assert done.wait() != 0
    assert done.said() == ""


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_what_is_asked_for_often_does_not_wait_for_torch(argument: str) -> None:
    code = (
        "import sys; from ownview.cli.main import entry; sys.argv = ['ownview', sys.argv[1]]\n"
        "try: entry()\nexcept SystemExit as end: assert end.code == 0\n"
        "heavy = {'torch', 'numpy', 'polars', 'scipy'} & {*sys.modules}; assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code, argument], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


_AS_MODULE = "import runpy; runpy.run_module('ownview', run_name='__main__', alter_sys=True)"
_PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_MODULE, _FUNCTION = _PROJECT["scripts"]["ownview"].split(":")
_AS_PROGRAM = f"from {_MODULE} import {_FUNCTION}; {_FUNCTION}()"


@pytest.mark.parametrize("start", [_AS_MODULE, _AS_PROGRAM])
def test_ctrl_c_while_the_command_line_is_loaded_is_one_line(start: str) -> None:
    """The signal comes when the parser of options is asked for, before any of Ownview's own handlers."""
    code = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # what runs in a shell's background ignores it
        "class Early:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'typer': signal.raise_signal(signal.SIGINT)\n"
        f"sys.meta_path.insert(0, Early())\n{start}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "ownview: stopped\n")


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    import importlib

    programs = ("ownview.cli", COMMANDS), ("reproduction.commands", REPRODUCTION)
    for package, name, one in [(package, *item) for package, words in programs for item in words.items()]:
        module = importlib.import_module(f"{package}.{one.module}")
        if hasattr(module, "app"):
            assert module.app.info.help == one.sentence
        else:
            sentence = " ".join((module.command.__doc__ or "").partition("\n\n")[0].split())
            assert sentence == one.sentence, name


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_training_is_one_line(
    number: signal.Signals, ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ownview.runs.training import setup

    monkeypatch.setattr(setup, "load", lambda *_, **__: signal.raise_signal(number))
    # A shell starts what runs in its background with Ctrl-C ignored, tests included.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        outcome = ownview("run", "popularity", "--data", "world.csv", "--out", "r")
    finally:
        signal.signal(signal.SIGINT, inherited)
    assert outcome == Outcome(128 + number, "", "ownview: stopped\n")


def test_term_ends_a_run_in_its_first_round_and_it_can_go_on(
    ownview: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The round would last for ever; what it does in the meantime is sleep."""
    import time

    from ownview.runs.training import trainers

    def endless(self: object, number: int) -> None:
        signal.raise_signal(signal.SIGTERM)
        while True:
            time.sleep(0.01)

    with monkeypatch.context() as patch:
        patch.setattr(trainers.FederatedTrainer, "round", endless)
        outcome = ownview("run", "fedmf", "--data", "world.csv", "--rounds", "2", "--out", "r")
    message = "ownview: stopped in round 1; go on with: ownview run --resume r\n"
    assert outcome == Outcome(128 + signal.SIGTERM, "", message)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert ownview("run", "--resume", "r").code == 0
