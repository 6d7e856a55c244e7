"""Two occurrences of an error have the same signature, whatever differs between them; other errors have another."""

import pytest
from hypothesis import given, strategies as st

from pipeline.text.error_signature import (
    MAX_ERROR_CHARS,
    compare_signatures,
    list_signatures,
    pick_error,
    sign_error,
)

# Each group is one error in several occurrences: of Python, Node, TypeScript, Go, Rust, Java, C++, shells, git,
# package managers, containers and test programs.
SAME = {
    "python": (
        (
            'Traceback (most recent call last):\n  File "/home/a/x.py", line 3, in <module>\n    import yaml\n'
            "ModuleNotFoundError: No module named 'yaml'"
        ),
        (
            'Traceback (most recent call last):\n  File "C:\\src\\y.py", line 88, in run\n'
            "ModuleNotFoundError: No module named 'yaml'"
        ),
        "E   ModuleNotFoundError: No module named 'yaml'\n1 error in 0.20s",
    ),
    "pytest": (
        "FAILED tests/test_a.py::test_sum[2-3] - AssertionError: assert 4 == 5\n1 failed, 3 passed in 0.2s",
        "FAILED tests/unit/test_a.py::test_sum[7-1] - assert 9 == 8\n1 failed in 11.02s",
    ),
    "node": (
        "Error: connect ECONNREFUSED 127.0.0.1:6379\n    at TCPConnectWrap.afterConnect (node:net:1555:16)",
        "Error: connect ECONNREFUSED 127.0.0.1:6380\n    at TCPConnectWrap.afterConnect (node:net:1601:16)",
    ),
    "typescript": (
        "src/a.ts(10,5): error TS2339: Property 'id' does not exist on type 'User'.",
        "packages/web/src/b.ts:7:12 - error TS2339: Property 'id' does not exist on type 'User'.",
    ),
    "go": ("./main.go:10:2: undefined: Foo", "# example.org/x\ninternal/y/z.go:7:14: undefined: Foo"),
    "rust": (
        "error[E0382]: borrow of moved value: `cfg`\n --> src/main.rs:4:5\nerror: could not compile `a`",
        "\x1b[31merror[E0382]\x1b[0m: borrow of moved value: `cfg`\n  --> src/lib.rs:88:9",
    ),
    "java": (
        (
            'Exception in thread "main" java.lang.IllegalStateException: no\n\tat a.B.c(B.java:1)\n'
            "Caused by: java.net.ConnectException: Connection refused\n\t... 3 more"
        ),
        (
            'Exception in thread "worker-7" java.lang.RuntimeException: x\n\tat q.R.s(R.java:77)\n'
            "Caused by: java.net.ConnectException: Connection refused\n\t... 12 more"
        ),
    ),
    "c++": (
        (
            "/home/a/x.cpp:3:10: fatal error: zlib.h: No such file or directory\ncompilation terminated.\n"
            "make: *** [Makefile:9: x.o] Error 1"
        ),
        "src/y.cc:17:10: fatal error: zlib.h: No such file or directory",
    ),
    "shell": ("bash: rg: command not found", "zsh: command not found: rg", "/bin/sh: 1: rg: not found"),
    "git": (
        "fatal: unable to access 'https://example.org/a.git/': Could not resolve host: example.org",
        "fatal: unable to access 'https://example.org/a.git/': Could not resolve host: example.org\nhint: try again",
    ),
    "npm": (
        "npm ERR! code ERESOLVE\nnpm ERR! ERESOLVE unable to resolve dependency tree\nnpm ERR! A complete log of this",
        "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\nnpm error",
    ),
    "docker": (
        "Error response from daemon: Bind for 0.0.0.0:5432 failed: port is already allocated",
        "Error response from daemon: Bind for 127.0.0.1:8080 failed: port is already allocated",
    ),
    "kubectl": (
        'Error from server (NotFound): pods "web-7d9f8b6c5-x2x7z" not found',
        'Error from server (NotFound): pods "web-5c8d7f9b4d-9k2lm" not found',
    ),
    "jest": (
        "FAIL src/a.test.ts\n  ● sum › adds\n    expect(received).toBe(expected)\n    Expected: 3",
        "FAIL  web/src/a.test.ts (5.1 s)\n  ● sum › adds\n    expect(received).toBe(expected)\n    Expected: 71",
    ),
}
ERRORS = [(group, text) for group, texts in SAME.items() for text in texts]
OTHERS = [
    "ModuleNotFoundError: No module named 'toml'",
    "KeyError: 'HOME'",
    "Error: connect ETIMEDOUT 127.0.0.1:6379",
    "bash: fd: command not found",
    "error[E0499]: cannot borrow `cfg` as mutable more than once at a time",
    "fatal: not a git repository (or any of the parent directories): .git",
    "Error from server (Forbidden): pods is forbidden",
]
FOLDERS = st.lists(st.from_regex(r"[a-z]{2,8}", fullmatch=True), min_size=1, max_size=4).map("/".join)
NUMBERS = st.integers(min_value=1, max_value=60_000)


@pytest.mark.parametrize("group", SAME)
def test_occurrences_of_an_error_have_one_signature(group):
    assert len({sign_error(text) for text in SAME[group]}) == 1


def test_different_errors_have_different_signatures():
    signatures = [sign_error(texts[0]) for texts in SAME.values()] + [sign_error(text) for text in OTHERS]
    assert len(set(signatures)) == len(signatures)


@pytest.mark.parametrize(("group", "text"), ERRORS)
def test_the_stored_part_of_an_output_has_the_signature_of_the_output(group, text):
    noise = "\n".join(f"compiling unit {number}" for number in range(200))
    output = f"{noise}\n{text}"
    assert len(pick_error(output)) <= MAX_ERROR_CHARS
    assert sign_error(pick_error(output)) == sign_error(output) == sign_error(text)


@given(FOLDERS, FOLDERS, NUMBERS, NUMBERS, st.sampled_from(["py", "ts", "go", "rs", "java", "cpp"]))
def test_paths_lines_and_ports_do_not_matter(folder, other, line, port, ending):
    def write(where, number):
        position = f"/{where}/app.{ending}:{number}:{number}"
        return f"{position}: error: cannot reach 10.0.0.{number % 250}:{number} after {number}ms"

    assert sign_error(write(folder, line)) == sign_error(write(other, port))


@given(st.uuids(), st.binary(min_size=20, max_size=20), st.datetimes())
def test_ids_hashes_and_times_do_not_matter(identifier, digest, at):
    text = f"{at.isoformat()} ERROR: job {identifier} of commit {digest.hex()} failed at 0x{digest.hex()[:12]}"
    assert sign_error(text) == sign_error(
        "2026-01-01T00:00:00 ERROR: job 6b1d2f3a-0c55-4d1e-9d1f-6a7b8c9d0e1f of commit "
        "da39a3ee5e6b4b0d3255bfef95601890afd80709 failed at 0x7ffe12ab"
    )


@given(st.text(max_size=4000))
def test_any_output_has_a_short_error_whose_signature_is_stable(output):
    error = pick_error(output)
    assert len(error) <= MAX_ERROR_CHARS
    assert sign_error(pick_error(error)) == sign_error(error)
    assert all(signature == " ".join(signature.split()) for signature in list_signatures(output))


def test_a_missing_name_makes_another_error():
    missing = [sign_error(f"Error: Cannot find module '{name}'") for name in ("express", "left-pad")]
    assert compare_signatures(*missing) < compare_signatures(missing[0], missing[0]) == 1
    assert pick_error("") == ""
    assert sign_error("") is None
    assert sign_error("\n\n") is None


@pytest.mark.parametrize(
    "output",
    [
        "Exit code 1",
        "exit code: 2",
        "Exit Code: 127\n",
        "grep: exit code 1",
        "Error: Exit code 1",
        "Error: Process completed with exit code 1.",
        "Process exited with code 1",
        "Command failed with exit code 1",
        "Command exited with non-zero status 2",
        "exit status 1",
        "The command returned a non-zero code: 1",
        "[exit code: 1]",
        "<shellId: 3 completed with exit code 1>",
        "exited with status 1",
        "exit 1",
    ],
)
def test_a_bare_exit_code_is_no_error(output):
    assert pick_error(output) == ""
    assert list_signatures(output) == []
    assert (
        pick_error(f"{output}\nModuleNotFoundError: No module named 'vat'")
        == "ModuleNotFoundError: No module named 'vat'"
    )


@pytest.mark.parametrize(
    "line", ["make: *** [Makefile:5: test] Error 1", "npm ERR! code ELIFECYCLE", "error: status code 500 of api"]
)
def test_a_line_that_says_more_than_an_exit_code_is_an_error(line):
    assert pick_error(line)
