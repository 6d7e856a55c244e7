"""Measure every expression that a write or a reader of transcripts runs, and redact() and instructs() as a whole.

Run by `make bench-patterns`. The expressions are found in the modules; text that is slow for each is derived from it:
samples of what it matches, near misses and long runs, repeated. An expression that is only tried at one place of a text
is tried at the beginning of it.
"""

import argparse
import importlib
import inspect
import pkgutil
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from re import (
    _constants as ops,  # type: ignore[attr-defined]  # the parser of the standard library has no other name
    _parser as parser,  # type: ignore[attr-defined]
)
from types import ModuleType
from typing import Any, Final

from benchmarks.figures import Aim, Limit, Report
from pipeline.text.instructions import instructs
from pipeline.text.normalize import normalize_text
from pipeline.text.redaction import redact

PACKAGES: Final = ("pipeline.text", "pipeline.write", "pipeline.kernel.records", "pipeline.sessions.readers")
PROBE, SIZE = 1 << 12, 1 << 16  # characters: to find the worst text, and to measure with it
WORST: Final = 5
MOST_SECONDS: Final = 1  # to measure an expression with the longer text, and to find its worst text
SHOWN: Final = 25
AIM: Final = Aim("s/MB", 0.1)
MEGABYTE: Final = 1_000_000
# A class: a plain letter would be searched for by the C library.
ABSENT: Final = re.compile(r"[\x02\x04]")
SCANS: Final = 20
LONG_RUN: Final = 60
MOST_BRANCHES: Final = 6
TYPICAL: Final = {
    "a note": """Ann prefers short answers with a table at the end. She works from Lisbon on Mondays and Tuesdays and is
away in August; questions about invoices go to Pavel, everything about the importer to Ann herself. The weekly call
moved from Thursday to Wednesday at ten, since the other team has its planning then.""",
    "a decision": """We moved the staging database to the new host in Frankfurt; deploys now go through the release
workflow in .github/workflows/release.yml. The key decision: keep sessions in Redis for 14 days, because the mobile
client refreshes its token only on start. See docs/concepts/architecture.md for the reasons.""",
    "about code": """`app/text/checks/__init__.py` runs each rule only if a plain substring wakes it. Fixed in
3f2a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a: `password: str` was taken for a value. Run `pytest tests/unit/test_checks.py
-k password` before touching it; the table there is long but readable.""",
}
# fmt: off
HOSTILE: Final = (
    "://a:", "://a:b/", "https://u:/@", "token=", "token= none ", "token=$", "password: ", 'password="', "password=' ",
    "password=&", "password:\n", "passwords: [", 'password":{"a":', "secret: <", "token=<<a\n", "password=<![CDATA[<a",
    'password=f("', "key a_key=", "eyJhb", "eyJhb.", "-----BEGIN RSA " + "PRIVATE KEY-----\n", "-----BEGIN ", "echo ",
    "curl -u a:", "mysql -p ", 'curl "', "echo a|", "docker -p login ", "Bearer ", "Cookie: a=", 'value="a" name=',
    "AKIA", 'value="', "?key=", "a-", "a_", "A", "0", "9:", "M.", "\\", '"', "[", "[REDACTED:", "key=-us", "sk-",
    "xoxb-1-", "SK", "npm_", "glagent-", "ignore ", "ignore'-", "send the ", "you are now the ", "do not ", "<sys",
    "forget a a a a ",
    "base64 -d ", "system prompt ", "act as an a a a a ", "\u0301\u0327", "\u200d", "\u5ffd\u7565",
)
# fmt: on


def main() -> None:
    """Print the figures, worst first, and write them as JSON where asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--size", type=int, default=SIZE, help="characters of the text that is measured with")
    options.add_argument("--all", action="store_true", help="show every expression")
    options.add_argument("--json", type=Path, help="write the figures here too")
    given = options.parse_args()
    report = Report()
    scan = Limit("a search for one letter", measure_scan(given.size))
    rates = sorted(measure_patterns(given.size), reverse=True)
    report.section(f"{len(rates)} expressions, hostile text of {given.size} characters, worst first")
    for rate, name, unit in rates if given.all else rates[:SHOWN]:
        report.row(name, f"{rate:7.3f} s/MB  {unit[:40]!r}", (AIM, rate), against=(scan, rate))
    report.keep("patterns", value={name: round(rate, 4) for rate, name, _ in rates})
    for work in (redact, instructs, normalize_text):
        measure_whole(report, work, given.size, scan)
    report.write(given.json)


def measure_scan(size: int) -> float:
    """Return the seconds a megabyte of the least that an expression can do: search every place for a letter."""
    text = repeat("a", size)
    return measure(lambda _: [ABSENT.search(text) for _ in range(SCANS)], text) / SCANS


def measure_patterns(size: int) -> Iterator[tuple[float, str, str]]:
    """Yield of each expression the seconds a megabyte of its worst text takes, its name, and what that text repeats."""
    for name, pattern, run in find_patterns():
        rates = find_rates(pattern, run)
        for unit in sorted(rates, key=lambda unit: rates[unit], reverse=True)[
            :WORST
        ]:  # a probe may have been interrupted
            rates[unit] = min(measure(run, repeat(unit, PROBE)) for _ in range(2))
        worst = max(rates, key=lambda unit: rates[unit])
        if rates[worst] * size / MEGABYTE > MOST_SECONDS:
            # Its time may grow faster than the text: the rate of the shorter text shows that it is too slow.
            yield rates[worst], name, worst
        else:
            yield min(measure(run, repeat(worst, size)) for _ in range(2)), name, worst


def find_rates(pattern: re.Pattern[str], run: Callable[[str], Any]) -> dict[str, float]:
    """Return what each part that may be slow takes when it is repeated; stop at the first that is far too slow."""
    rates: dict[str, float] = {}
    for unit in hostile_units(pattern):
        rates[unit] = measure(run, repeat(unit, PROBE))
        if rates[unit] * PROBE / MEGABYTE > MOST_SECONDS:
            break
    return rates


def measure_whole(report: Report, work: Callable[[str], Any], size: int, scan: Limit) -> None:
    """Report what a function takes for typical texts, and a megabyte of each hostile one, worst first."""
    report.section(f"{work.__name__}()")
    for name, text in TYPICAL.items():
        fastest = min(measure(work, text) for _ in range(2000)) * len(text)  # microseconds
        report.row(f"{name}, {len(text)} characters", f"{fastest:7.1f} µs")
        report.keep(work.__name__, name, value=round(fastest, 1))
    rates = sorted(((measure(work, repeat(unit, size)), unit) for unit in HOSTILE), reverse=True)
    for rate, unit in rates[: SHOWN // 2]:
        report.row("hostile", f"{rate:7.3f} s/MB  {unit!r}", against=(scan, rate))
    report.keep(work.__name__, "hostile", value={unit: round(rate, 4) for rate, unit in rates})


def measure(work: Callable[[str], Any], text: str) -> float:
    """Return the seconds of the processor that a megabyte of text would take."""
    began = time.process_time()
    work(text)
    return (time.process_time() - began) / len(text) * MEGABYTE


def repeat(unit: str, size: int) -> str:
    """Return a text of about a size that repeats a part."""
    return unit * (size // len(unit) + 1)


# The expressions of the modules


def find_patterns() -> Iterator[tuple[str, re.Pattern[str], Callable[[str], Any]]]:
    """Yield the expressions of all modules once, each with its name and what a write does with it."""
    seen: set[int] = set()
    for package in PACKAGES:
        root = importlib.import_module(package)
        for found in pkgutil.walk_packages(root.__path__, f"{package}."):
            importlib.import_module(found.name)
    for name in sorted(sys.modules):
        if name.startswith(PACKAGES):
            module = sys.modules[name]
            for path, pattern in patterns_in(vars(module), name.removeprefix("pipeline."), 0):
                if id(pattern) not in seen:
                    seen.add(id(pattern))
                    yield path, pattern, find_run(module, path, pattern)


def patterns_in(value: Any, path: str, depth: int) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the expressions that a value holds, however deep, with the path to each."""
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield path, value
    elif depth < 6:
        for name, part in parts_of(value):
            joint = "." if depth == 0 else "/"
            yield from patterns_in(part, f"{path}{joint}{name}", depth + 1)


def parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a container with a name for each."""
    if isinstance(value, dict):
        yield from ((str(key)[:24], part) for key, part in value.items() if not str(key).startswith("__"))
    elif isinstance(value, list | tuple):
        yield from ((str(number), part) for number, part in enumerate(value))
    elif isinstance(value, partial):
        yield from ((str(number), part) for number, part in enumerate(value.args))
    elif is_dataclass(value) and not isinstance(value, type):
        yield from ((field.name, getattr(value, field.name)) for field in fields(value))


def find_run(module: ModuleType, path: str, pattern: re.Pattern[str]) -> Callable[[str], Any]:
    """Return what a write does with an expression: find all that matches, or try it at one place of a text."""
    if module.__name__ == instructs.__module__ and path.endswith("/pattern"):
        return instructs  # which tries it where its heads stand
    name = path.rpartition(".")[2].split("/")[0]
    uses = set(re.findall(rf"\b{re.escape(name)}\.(\w+)\(", inspect.getsource(module)))
    is_anchored = bool(uses) and uses <= {"match", "fullmatch"}
    return pattern.match if is_anchored else lambda text: sum(1 for _ in pattern.finditer(text))


# Text that is slow for an expression


def hostile_units(pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield parts that, repeated, are slow for an expression: what it matches, near misses, and long runs."""
    parsed = parser.parse(pattern.pattern, pattern.flags)
    yield from ("a", "0", " ", "\n", "a ", "-", "é")
    for most in (1, 3, LONG_RUN):
        for branch in range(min(MOST_BRANCHES, count_branches(parsed))):
            sample = make_sample(parsed, branch, most)
            if sample:
                yield sample
                yield f"{sample[:-1]}\x01"
                yield f"{sample} "
                yield from islice((sample[:cut] for cut in range(1, len(sample), max(1, len(sample) // 2))), 2)


def count_branches(parsed: Any) -> int:
    """Return the most alternatives that stand at one place of an expression."""
    most = 1
    for operation, argument in parsed:
        if operation is ops.BRANCH:
            most = max(most, len(argument[1]), *(count_branches(each) for each in argument[1]))
        elif inner := inner_of(operation, argument):
            most = max(most, count_branches(inner))
    return most


def inner_of(operation: Any, argument: Any) -> Any:
    """Return the expression that an operation holds, or None."""
    if operation in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
        return argument[2]
    if operation is ops.SUBPATTERN:
        return argument[3]
    return argument if operation is ops.ATOMIC_GROUP else None


def make_sample(parsed: Any, branch: int, most: int) -> str:
    """Return a text that an expression is likely to match, with one of its alternatives and repetitions of a length."""
    pieces = []
    for operation, argument in parsed:
        if operation is ops.LITERAL:
            pieces.append(chr(argument))
        elif operation in (ops.NOT_LITERAL, ops.ANY):
            pieces.append("a")
        elif operation is ops.IN:
            pieces.append(letter_of(argument))
        elif operation is ops.BRANCH:
            pieces.append(make_sample(argument[1][branch % len(argument[1])], branch, most))
        elif operation is ops.GROUPREF_EXISTS:
            pieces.append(make_sample(argument[1], branch, most))
        elif inner := inner_of(operation, argument):
            times = min(max(argument[0], most), argument[1]) if operation in _REPEATS else 1
            pieces.append(make_sample(inner, branch, most) * times)
    return "".join(pieces)[:2000]


_REPEATS: Final = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
_CATEGORIES: Final = {
    ops.CATEGORY_DIGIT: "0",
    ops.CATEGORY_SPACE: " ",
    ops.CATEGORY_WORD: "a",
    ops.CATEGORY_NOT_WORD: "-",
}


def letter_of(choices: Any) -> str:
    """Return a letter of a class."""
    operation, argument = choices[0]
    if operation is ops.NEGATE:
        tried = re.compile("".join(("[^", "".join(map(written, choices[1:])), "]")))
        return next((letter for letter in "aA0-. \n<é" if tried.match(letter)), "")
    if operation is ops.RANGE:
        return chr(argument[0])
    return chr(argument) if operation is ops.LITERAL else _CATEGORIES.get(argument, "a")


def written(choice: tuple[Any, Any]) -> str:
    """Return one choice of a class as it is written."""
    operation, argument = choice
    if operation is ops.RANGE:
        return "-".join(re.escape(chr(end)) for end in argument)
    if operation is ops.LITERAL:
        return re.escape(chr(argument))
    return {ops.CATEGORY_DIGIT: r"\d", ops.CATEGORY_SPACE: r"\s", ops.CATEGORY_WORD: r"\w"}.get(argument, r"\W")


if __name__ == "__main__":
    main()
