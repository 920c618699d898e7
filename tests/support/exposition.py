"""A strict reader of Prometheus' text format: what it does not understand, or the format forbids, fails."""

from __future__ import annotations

import re

_HELP = re.compile(r"# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ((?:[^\\\n]|\\\\|\\n)+)")
_TYPE = re.compile(r"# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (gauge|counter)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"')
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\{(.*)\} ([-+]?(?:Inf|\d+(?:\.\d+)?(?:e[-+]?\d+)?))")
_UNESCAPED = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}

Series = tuple[str, frozenset[tuple[str, str]]]


def read_exposition(text: str) -> dict[Series, float]:
    """Every sample by name and labels; each metric once, with HELP and TYPE before its samples, and no series twice."""
    assert text.endswith("\n")
    found: dict[Series, float] = {}
    described: list[str] = []
    lines = iter(text.removesuffix("\n").split("\n"))
    for line in lines:
        helped = _HELP.fullmatch(line)
        if helped:
            assert helped[1] not in described, f"{helped[1]} stands in two places"
            typed = _TYPE.fullmatch(next(lines))
            assert typed, f"no TYPE after {line}"
            assert typed[1] == helped[1]
            described.append(helped[1])
            continue
        sample = _SAMPLE.fullmatch(line)
        assert sample, f"not understood: {line!r}"
        assert described[-1:] == [sample[1]], f"{sample[1]} is not described right before"
        series = (sample[1], frozenset(_labels(sample[2])))
        assert series not in found, f"twice: {line}"
        found[series] = float(sample[3])
    return found


def series(name: str, **labels: str) -> Series:
    return name, frozenset(labels.items())


def _labels(text: str) -> list[tuple[str, str]]:
    pairs, at = [], 0
    while at < len(text):
        label = _LABEL.match(text, at)
        assert label, f"no label at {text[at:]!r}"
        pairs.append((label[1], re.sub(r"\\.", lambda escaped: _UNESCAPED[escaped[0]], label[2])))
        at = label.end()
        if at < len(text):
            assert text[at] == ","
            at += 1
    return pairs
