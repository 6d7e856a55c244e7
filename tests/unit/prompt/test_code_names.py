"""What of code a message names: paths and identifiers, and no word of prose."""

import re

import pytest
from hypothesis import given, strategies as st

from pipeline.prompt.code_names import CodeNames, defines, read_code_names


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ("look at ./flask/ctx.py, please", CodeNames(("flask/ctx.py",))),
        ('File "C:\\app\\flask\\cli.py", line 3', CodeNames(("app/flask/cli.py",))),
        ("`SqliteStorage.dequeue()` hangs", CodeNames((), ("SqliteStorage",))),
        ("find_best_app and class Result", CodeNames((), ("find_best_app", "Result"))),
        ("fix storage.py: FileStorage leaks", CodeNames(("storage.py",), ("FileStorage",))),
        ("thanks, and/or e.g. this: go on", CodeNames()),
        ("Berlin is in Germany. What next?", CodeNames()),
        ("mail ann@example.com", CodeNames()),
    ],
)
def test_names_are_read_from_a_message(message, names):
    found = read_code_names(message)
    assert found.files == names.files
    assert set(found.symbols) == set(names.symbols)


@pytest.mark.parametrize(
    ("outline", "is_defined"),
    [
        ("class Result(object) (l. 30): A result.", True),
        ("def result_of(Result) (l. 3)", True),
        ("Private: Result (l. 8), other (l. 9).", True),
        ("Imports: huey.api.Result.", False),
        ("class ResultGroup (l. 4)", False),
    ],
)
def test_outline_reports_the_names_it_defines(outline, is_defined):
    assert defines(outline, "Result") is is_defined


# How files were found before: correct, but its steps grow with the square of the text.
REFERENCE = re.compile(r"(?<![\w@])(?:[\w.@+-]+[/\\])*[\w+-][\w.+-]+\.[a-z]\w{0,9}(?![\w/\\(@])")


@given(
    st.text(st.sampled_from("abC1_/\\ (.-"), max_size=24).filter(lambda text: not re.search(r"[-/\\][.]|^[.]", text))
)
def test_files_are_found_as_by_one_expression(message):
    expected = [found[0].replace("\\", "/").removeprefix("./") for found in REFERENCE.finditer(message)]
    assert read_code_names(message).files == tuple(dict.fromkeys(expected))[:8]


@pytest.mark.parametrize("message", ["see .github/ci.yml", "open src/.eslintrc.js now", "./a/b.py", "../x/y.tar.gz."])
def test_dots_before_names_are_read_as_before(message):
    expected = [found[0].removeprefix("./") for found in REFERENCE.finditer(message)]
    assert list(read_code_names(message).files) == expected
