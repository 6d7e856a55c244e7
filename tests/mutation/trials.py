"""Run tests against mutants of mutmut: `python trials.py TEST …` in the copy of the tree, with mutmut on the path.

Reads a line `{"name": …, "tests": […], "seconds": …}` of JSON for each mutant, and prints what became of it. The tests
are imported once; each mutant meets them in a fork of that process.
"""

import gc
import json
import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

OPTIONS = ["-p", "no:xdist", "-p", "no:cacheprovider", "--hypothesis-profile=fast", "-m", "not models and not git"]
POLL_S = 0.02
# Exit codes of pytest, and signals. Every other one is that of a mutant that a test noticed.
OUTCOMES = {0: "survived", 5: "no test was chosen", -signal.SIGXCPU: "timeout", -signal.SIGKILL: "timeout"}


def main(tests: Sequence[str]) -> None:
    """Import the tests, then try the mutants that the input names."""
    sys.path.insert(0, str(Path.cwd()))
    os.environ["MUTANT_UNDER_TEST"] = ""
    # The output belongs to the answers.
    answers = os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)
    collected = pytest.main(["--collect-only", "-qq", *OPTIONS, *tests])
    print(json.dumps({"collected": int(collected)}), file=answers, flush=True)
    gc.freeze()
    for line in sys.stdin:
        mutant = json.loads(line)
        result = try_mutant(mutant["name"], mutant["tests"], mutant["seconds"])
        print(json.dumps({"name": mutant["name"], "result": result}), file=answers, flush=True)


def try_mutant(name: str, tests: Sequence[str], seconds: float) -> str:
    """Run tests with a mutant until one fails; return `survived`, `killed`, `timeout` or why nothing ran."""
    with warnings.catch_warnings():
        # No thread runs yet: the tests are only imported.
        warnings.simplefilter("ignore")
        process = os.fork()
    if not process:
        # It also ends if this process is killed.
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
        os.environ["MUTANT_UNDER_TEST"] = name
        os._exit(int(pytest.main(["-x", "-q", "--no-header", *OPTIONS, *tests])))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        finished, status = os.waitpid(process, os.WNOHANG)
        if finished:
            code = os.waitstatus_to_exitcode(status)
            return OUTCOMES.get(code, "killed")
        time.sleep(POLL_S)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return "timeout"


if __name__ == "__main__":
    main(sys.argv[1:])
