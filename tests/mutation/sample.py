"""`make test-mutation`: change single expressions of code that writes, erases and merges; list what no test notices.

mutmut makes the changes (mutants) in a copy of the tree, and finds which tests run which function. A seed chooses an
even part of the mutants of each function. A mutant first meets a few tests that are specific to its function; if it
survives, all that run the function. A run that is stopped continues where it was.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from tests.mutation.trials import OPTIONS

ROOT = Path(__file__).parents[2]
MUTATED = ("pipeline/write/*.py", "pipeline/features/purge/*.py", "pipeline/features/sync/merge.py")
TESTS = (
    *(
        f"tests/unit/{name}"
        for name in (
            *("write", "kernel/store", "features/purge", "features/sync", "features/memories", "features/review"),
            "features/indexing/test_screen.py",
        )
    ),
    *(
        f"tests/integration/test_{name}.py"
        for name in (
            *("moving", "purged_copies", "purged_spool", "purges_that_fail", "refused"),
            *("branch_memory", "people", "client_ids", "lifecycle"),
        )
    ),
)
# Everything else that these tests read.
COPIED = (
    *("benchmarks", "clients", "config", "demo", "docs", "findings", "web", "workers"),
    *("requirements.lock", "requirements-dev.lock"),
)
# How many tests a mutant meets first and then, and the seconds that they take together without it.
FIRST, ALL = (15, 1.5), (300, 10.0)
# A mutant may slow its tests down; on a busy machine they are slow without it.
PATIENCE, LEAST_S = 6, 20
SEED = 1
UNTESTED = "no test runs it"


class Sample:
    """The mutants of a copy of the tree, and what became of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.copy = folder / "mutants"
        self.results = folder / "results.json"

    def prepare(self, python: Path) -> None:
        """Copy the tree, make all mutants, and run the tests once to see which of them run which function."""
        self.folder.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(self.folder)], input=archive, check=True)
        lines = {
            "source_paths": ["pipeline"],
            "only_mutate": MUTATED,
            "also_copy": COPIED,
            "pytest_add_cli_args": OPTIONS,
            "pytest_add_cli_args_test_selection": self._tests(),
            "use_git_change_detection": ["false"],
        }
        values = (f"{name}=\n    " + "\n    ".join(value) for name, value in lines.items())
        (self.folder / "setup.cfg").write_text("\n".join(["[mutmut]", *values, ""]))
        # It does all of this before it notices that it has no such mutant.
        subprocess.run([python, "-m", "mutmut", "run", "none"], cwd=self.folder, check=False)
        self.results.write_text("{}")

    def _tests(self) -> list[str]:
        return [path for path in TESTS if (ROOT / path).exists()]

    def names(self) -> list[str]:
        """List all mutants."""
        files = (file for file in self.copy.rglob("*.meta") if file.stat().st_size)
        return [name for file in files for name in json.loads(file.read_text())["exit_code_by_key"]]

    def choose(self, share: float, modules: Sequence[str]) -> list[str]:
        """Return an even part of the mutants of each function of some modules, at least one."""
        functions: dict[str, list[str]] = defaultdict(list)
        for name in self.names():
            if name.startswith(tuple(modules)):
                functions[_function_of(name)].append(name)
        chosen = []
        for function, names in sorted(functions.items()):
            names.sort(key=lambda name: int(name.rpartition("_")[2]))
            chosen += random.Random(f"{SEED} {function}").sample(names, math.ceil(len(names) * share))
        # In an order in which every part of a run is a sample.
        random.Random(SEED).shuffle(chosen)
        return chosen

    def run(self, names: Sequence[str], until: float, python: Path) -> bool:
        """Try mutants that have no result yet; return whether all have one."""
        stats = json.loads((self.copy / "mutmut-stats.json").read_text())
        tests, durations = stats["tests_by_mangled_function_name"], stats["duration_by_test"]
        reach = Counter(test for each in tests.values() for test in each)
        results: dict[str, str] = json.loads(self.results.read_text())
        # The tests may have become more since the last run.
        due = [name for name in names if results.get(name, UNTESTED) == UNTESTED]
        with _Trials(self.copy, python, self._tests()) as trials:
            for number, name in enumerate(due, 1):
                if time.monotonic() > until:
                    return False
                # Tests of few functions first.
                every = sorted(tests.get(_function_of(name), []), key=lambda test: (reach[test], test))
                result, tried = UNTESTED, 0
                for chosen in (_choose(every, durations, *limits) for limits in (FIRST, ALL)):
                    if len(chosen) > tried and result in (UNTESTED, "survived"):
                        seconds = max(LEAST_S, PATIENCE * sum(durations[test] for test in chosen))
                        result, tried = trials.run(name, chosen, seconds), len(chosen)
                results[name] = result
                self.results.write_text(json.dumps(results, indent=1))
                print(f"{number} of {len(due)}: {result}: {name}", flush=True)
        return True

    def report(self, names: Iterable[str], python: Path | None) -> None:
        """Print how many mutants were killed; with Python, show each other one."""
        results = json.loads(self.results.read_text())
        last = {name: results[name] for name in names if name in results}
        print(f"{len(self.names())} mutants, {len(last)} sampled: {dict(Counter(last.values()))}", flush=True)
        for name, result in sorted(last.items()):
            if python is not None and result not in ("killed", "timeout"):
                shown = subprocess.run(
                    [python, "-m", "mutmut", "show", name], cwd=self.folder, check=True, capture_output=True, text=True
                )
                print(f"\n{name}: {result}\n{shown.stdout}")


class _Trials:
    """The process that imports the tests once."""

    def __init__(self, copy: Path, python: Path, tests: Sequence[str]) -> None:
        command = [str(python), str(Path(__file__).with_name("trials.py")), *tests]
        self._process = subprocess.Popen(command, cwd=copy, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        assert self._answer() == {"collected": 0}
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def run(self, name: str, tests: Sequence[str], seconds: float) -> str:
        """Run tests with a mutant; return what became of it."""
        assert self._process.stdin is not None
        print(json.dumps({"name": name, "tests": tests, "seconds": seconds}), file=self._process.stdin, flush=True)
        return str(self._answer()["result"])


def _function_of(name: str) -> str:
    return name.rpartition("__mutmut_")[0]


def _choose(tests: Sequence[str], durations: dict[str, float], most: int, seconds: float) -> list[str]:
    """Return the first of some tests that are fast enough together, at least one."""
    spent, chosen = 0.0, []
    for test in tests:
        if len(chosen) < most and (spent + durations[test] < seconds or not chosen):
            chosen.append(test)
            spent += durations[test]
    return chosen


def main() -> None:
    """Try a sample, and print what survived."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the copy of the tree, kept between runs")
    parser.add_argument("--only", nargs="+", default=[""], help="modules, such as pipeline.features.purge")
    parser.add_argument("--share", type=float, default=0.08, help="share of the mutants of each function")
    parser.add_argument("--seconds", type=float, default=math.inf, help="try no more mutants afterwards")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="an environment with mutmut")
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    os.environ |= {"HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "0"}
    sample = Sample(options.folder.resolve())
    if not sample.results.exists():
        sample.prepare(options.python)
    names = sample.choose(options.share, options.only)
    is_finished = sample.run(names, until, options.python)
    sample.report(names, options.python if is_finished else None)
    if not is_finished:
        print("not finished: the same command continues")


if __name__ == "__main__":
    main()
