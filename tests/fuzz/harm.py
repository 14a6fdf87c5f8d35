"""Ways to spoil bytes, TOML and words, each drawn from a seeded source of chance."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import torch
from torch import Tensor

TOKENS = (
    b"\0", b"\x1b[2J", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b'"', b"'", b",", b"\t", b"::", b"{", b"[", b"]" * 9,
    b"nan", b"inf", b"-1", b"1e999", b"9" * 400, b"NaN", b"null", b"true", b"\xe2\x80\xae", "²".encode(), b"[" * 3000,
    b"2009-04-01", b"0001-01-01T00:00:00+23:59", b"9999-12-31", b"\xed\xa0\x80", b"\x1f", b"\\u0000", b"#", b"=", b".",
)  # fmt: skip

WORDS = (
    "", " ", "0", "1", "2", "-1", "0.5", "nan", "inf", "-inf", "1e308", "1e-320", "9" * 400, "x", "true", "²", "٣",
    "a\tb", "\x1b[31m", ".", "-", "=", ",", ":", "+", "a,b", "1:2", "n" * 300, "caf\udce9", "[bold]", "{}", "%s",
    "None", "laplace:0.1", "gaussian:clip=1,noise=1", "laplace:", "poisson:0.5", "honest", "paper", "10:1",
    "/dev/full", "/dev/null", "*", "\\", "user=0,item=1", "user=item", "timestamp=-", "timestamp=a+b+c", "u1",
    "u1,u2", "u1,u1", "auto", "1e3", "0x10", "1_000", "+5", "1.5", "\u202e", "4GB", "1B", "0.0000001GB",
)  # fmt: skip
"""What people and programs type; no number that is sound and would take for ever."""


def spoilt_bytes(sound: bytes, chance: random.Random) -> bytes:
    """One to three wounds: a byte, a cut, a token put in, a stretch taken out, doubled, or moved."""
    content = bytearray(sound)
    for _ in range(chance.randint(1, 3)):
        start, stop = sorted(chance.randrange(len(content) + 1) for _ in range(2))
        stop = min(stop, start + chance.choice((1, 8, 64, 10**6)))
        match chance.randrange(6):
            case 0 if content:
                content[chance.randrange(len(content))] = chance.randrange(256)
            case 1:
                del content[start:]
            case 2:
                content[start:start] = chance.choice(TOKENS)
            case 3:
                del content[start:stop]
            case 4:
                content[start:start] = content[start:stop][:2000]
            case _:
                content[start:stop] = chance.choice(TOKENS)
    return bytes(content)


def spoilt_toml(sound: str, chance: random.Random) -> str:
    """A line gone, doubled, moved, or with another value; sometimes spoilt as bytes are."""
    if chance.random() < 0.3:
        return spoilt_bytes(sound.encode(), chance).decode("utf-8", "replace")
    lines = sound.splitlines()
    for _ in range(chance.randint(1, 2)):
        place = chance.randrange(len(lines))
        match chance.randrange(4):
            case 0:
                del lines[place]
            case 1:
                lines.insert(chance.randrange(len(lines)), lines[place])
            case 2:
                lines.insert(place, f"{_quoted(chance)} = {_value(chance)}")
            case _:
                lines[place] = re.sub(r"=.*", lambda _: f"= {_value(chance)}", lines[place])
        lines = lines or [""]
    return "\n".join(lines) + "\n"


def _value(chance: random.Random) -> str:
    """A value of TOML, of any kind."""
    plain = (
        "0",
        "1",
        "-1",
        "1.5",
        "nan",
        "inf",
        "true",
        "[]",
        "{}",
        "[[]]",
        "2009-04-01",
        "9" * 400,
        "[1, 'a']",
        "1e999",
    )
    return _quoted(chance) if chance.random() < 0.5 else chance.choice(plain)


def _quoted(chance: random.Random) -> str:
    word = chance.choice(WORDS).encode("utf-8", "replace").decode()
    escaped = "".join(f"\\u{ord(one):04x}" if ord(one) < 32 or one in '"\\' or ord(one) == 127 else one for one in word)
    return f'"{escaped}"'


def spoilt_json(sound: str, chance: random.Random) -> str:
    """Sound JSON in which one value is another, or one entry is gone or has another name."""
    whole = {"": json.loads(sound)}
    spoil_value(whole, chance)
    return json.dumps(whole.get("", chance.choice((None, 0, []))))


def spoil_value(whole: Any, chance: random.Random) -> None:
    """Change one place somewhere inside a table or list, which is changed itself."""
    inside = whole
    while True:
        places = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        if not places:
            return
        place = chance.choice(places)
        below = inside[place]
        if not isinstance(below, dict | list) or not below or (whole is not inside and chance.random() < 0.2):
            break
        inside = below
    match chance.randrange(4):
        case 0:
            del inside[place]
        case 1 if isinstance(inside, dict):
            inside[chance.choice(WORDS)] = inside.pop(place)
        case _:
            inside[place] = chance.choice(
                (None, True, 0, -1, 10**30, 1.5, 1e300, "x", "\x1b[2J", [], {}, [None], {"a": 1})
            )


def spoilt_tensors(sound: dict[str, Tensor], chance: random.Random) -> dict[str, Tensor]:
    """One tensor gone, of another shape, kind or name, or with numbers that are none."""
    made = dict(sound)
    name = chance.choice(sorted(made))
    value = made.pop(name)
    match chance.randrange(6):
        case 0:
            pass
        case 1:
            made[f"{name}x"] = value
        case 2:
            made[name] = value.reshape(-1)[:-1].clone()
        case 3:
            made[name] = torch.full_like(value, 120)
        case 4:
            made[name] = torch.full(value.shape, torch.nan)
        case _:
            made[name] = value[None].clone()
    return made
