"""Citations are resolved against real checkouts and histories."""

from pathlib import Path

import pytest

from pipeline.features.citations.history import State
from pipeline.features.citations.parser import find_citations
from pipeline.features.citations.resolve import find_changed_since, resolve_citations
from pipeline.kernel.git import git
from tests.fakes.cited_repository import Repository

pytestmark = pytest.mark.git


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def test_a_renamed_file_is_followed_to_its_present_name(repository: Repository) -> None:
    text = "def load_orders():\n    return 1\n" * 5
    repository.commit(**{"shop/orders.py": text})
    repository.commit(**{"shop/orders.py": None, "shop/loading.py": text})
    repository.commit(**{"shop/loading.py": None, "shop/storage/loading.py": text})
    assert repository.states("Orders are read in `shop/orders.py`.") == [
        ("shop/orders.py", State.RENAMED, "shop/storage/loading.py")
    ]


def test_a_deleted_file_is_gone_since_its_commit(repository: Repository) -> None:
    repository.commit(**{"shop/cart.py": "A = 1\n", "shop/keep.py": ""})
    deleted = repository.commit(**{"shop/cart.py": None})
    (findings,) = resolve_citations(repository.root, [find_citations("The cart is in shop/cart.py.")])
    assert [(item.state, item.change and item.change.commit) for item in findings] == [(State.GONE, deleted)]
    assert findings[0].describe() == f"shop/cart.py: no longer true since {deleted[:10]}"


def test_a_constant_with_another_value_is_contradicted(repository: Repository) -> None:
    repository.commit(**{"shop/limits.py": "MAX_ITEMS = 50\nMOST, MAX_DAYS = 1, 30\n"})
    repository.commit(**{"shop/limits.py": "MAX_ITEMS = 80\nMOST, MAX_DAYS = 1, 30\n"})
    assert repository.states("Carts are limited by `MAX_ITEMS = 50` and MAX_DAYS = 30.") == [
        ("MAX_ITEMS = 50", State.CHANGED, "80"),
        ("MAX_DAYS = 30", State.HOLDS, None),
    ]


def test_a_value_that_never_was_is_not_judged_in_a_memory(repository: Repository) -> None:
    repository.commit(**{"shop/limits.py": "MAX_ITEMS = 80\n"})
    assert repository.states("In production MAX_ITEMS = 12.") == [("MAX_ITEMS = 12", State.UNKNOWN, None)]
    assert repository.states("MAX_ITEMS = 12", are_files=True) == [("MAX_ITEMS = 12", State.CHANGED, "80")]


def test_a_renamed_function_is_reported_with_its_new_name(repository: Repository) -> None:
    repository.commit(**{"shop/prices.py": "def sum_prices(items, currency):\n    return 0\n"})
    repository.commit(**{"shop/prices.py": "def add_prices(items, currency):\n    return 0\n"})
    assert repository.states("Use `prices.sum_prices()`.") == [("prices.sum_prices()", State.RENAMED, "add_prices")]


def test_a_name_that_the_repository_never_defined_is_not_judged(repository: Repository) -> None:
    repository.commit(**{"a.py": "import other\nother.load_all()\n", "b.py": ""})
    repository.commit(**{"a.py": "pass\n"})
    states = repository.states("`load_all` and `np.array_split` are quick; see `lib/thing.py` and `npm run build`.")
    assert {state for _, state, _ in states} == {State.UNKNOWN}


def test_a_name_of_the_standard_library_is_not_judged_by_a_definition_here(repository: Repository) -> None:
    repository.commit(**{"a.py": "def total_ordering(cls):\n    return cls\n", "b.py": ""})
    repository.commit(**{"a.py": "pass\n"})
    assert repository.states("Use `functools.total_ordering`.") == [("functools.total_ordering", State.UNKNOWN, None)]
    assert repository.states("Use `a.total_ordering`.") == [("a.total_ordering", State.GONE, None)]


def test_targets_of_make_and_scripts_of_packages(repository: Repository) -> None:
    repository.commit(Makefile="test: deps\n\tpytest\nlint:\n\truff\n", **{"package.json": '{"scripts": {"dev": "x"}}'})
    repository.commit(Makefile="test: deps\n\tpytest\n")
    text = "Run `make test`, `make lint` and `npm run dev`, then `make ship`."
    assert [state for _, state, _ in repository.states(text)] == [State.HOLDS, State.GONE, State.HOLDS, State.UNKNOWN]
    assert repository.states(text, are_files=True)[-1] == ("make ship", State.DANGLING, None)


def test_commits_dangle_in_files_only(repository: Repository) -> None:
    head = repository.commit(**{"a.py": ""})
    text = f"Checked in commit {head[:9]} and commit 1234567abc."
    assert [state for _, state, _ in repository.states(text)] == [State.HOLDS, State.UNKNOWN]
    assert [state for _, state, _ in repository.states(text, are_files=True)] == [State.HOLDS, State.DANGLING]


@pytest.mark.parametrize(
    "text",
    [
        "We removed `shop/cart.py`.",
        "The cart will be in `shop/cart.py`.",
        "In shop 7, carts are in shop/cart.py.",
        "Before 2.0 carts go through `shop/cart.py`.",
        "Release 3.1 gets rid of `shop/cart.py`.",
        "`shop/cart.py` computed the total.",
        "The first release shipped `shop/cart.py`.",
        "Carts disappeared, and shop/cart.py with them.",
        "At first the total is in `shop/cart.py`.",
        "Since March there is no shop/cart.py.",
        "Your carts are in `shop/cart.py`.",
        "`shop/cart.py` → `shop/basket.py`",
        "For example `shop/cart.py`.",
        "```\nshop/cart.py\n```",
        "# Changes\n\n## Removed\n- `shop/cart.py`",
        "https://example.org/shop/cart.py",
        "../shop/cart.py and /shop/cart.py",
    ],
)
def test_statements_about_the_past_and_examples_are_not_judged(repository: Repository, text: str) -> None:
    repository.commit(**{"shop/cart.py": "A = 1\n", "shop/keep.py": ""})
    repository.commit(**{"shop/cart.py": None})
    assert {state for _, state, _ in repository.states(text, are_files=True)} <= {State.UNKNOWN}


@pytest.mark.parametrize(
    "text",
    [
        "Carts expire after 1.5 s, see `shop/cart.py`.",
        "`shop/cart.py` is limited by the settings.",
        "The total is always computed, see `shop/cart.py`.",
        "Totals computed by carts need `shop/cart.py`.",
        "Run the checks before each commit with `shop/cart.py`.",
    ],
)
def test_durations_and_conditions_are_no_statements_about_the_past(repository: Repository, text: str) -> None:
    repository.commit(**{"shop/cart.py": "A = 1\n", "shop/keep.py": ""})
    repository.commit(**{"shop/cart.py": None})
    assert [state for _, state, _ in repository.states(text)] == [State.GONE]


def test_paths_outside_of_the_checkout_are_not_looked_at(repository: Repository, tmp_path: Path) -> None:
    repository.commit(**{"a.py": ""})
    outside = tmp_path.parent / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "secret.py").write_text("", encoding="utf-8")
    (tmp_path / "link").symlink_to(outside)
    assert repository.states("See `link/secret.py`.") == [("link/secret.py", State.UNKNOWN, None)]


def test_options_and_expressions_in_citations_reach_no_command(repository: Repository) -> None:
    repository.commit(**{"a.py": ""})
    text = "`--output=x.py`, `-rf/a.py`, `a_b|c_d`, `$(touch owned.py)`, `make -f/tmp/x`, `some_name.*`"
    assert State.GONE not in {state for _, state, _ in repository.states(text, are_files=True)}
    assert sorted(path.name for path in repository.root.iterdir()) == [".git", "a.py"]


def test_a_folder_without_commits_has_no_history(repository: Repository) -> None:
    assert repository.states("`shop/cart.py` and `load_all`") == [
        ("shop/cart.py", State.UNKNOWN, None),
        ("load_all", State.UNKNOWN, None),
    ]


def test_files_that_changed_after_a_verification(repository: Repository) -> None:
    verified = repository.commit(**{"a/one.py": "1", "a/two.py": "2"})
    repository.commit(**{"a/one.py": "3"})
    findings = resolve_citations(repository.root, [find_citations("`one.py`, `a/two.py`"), find_citations("`a/`")])
    commits = [[verified[:9], "1234567abc"], [verified]]
    assert find_changed_since(repository.root, commits, findings) == [
        {verified[:9]: ("one.py",), "1234567abc": None},
        {verified: ()},
    ]


def test_a_repository_without_commits_has_no_verified_commit(repository: Repository) -> None:
    assert find_changed_since(repository.root, [["1234567abc"]], [[]]) == [{"1234567abc": None}]


def test_commits_with_the_same_files_have_the_same_changes(repository: Repository) -> None:
    first = repository.commit(**{"a.py": "1"})
    repository.commit(**{"a.py": "2"})
    again = repository.commit(**{"a.py": "1"})
    repository.commit(**{"a.py": "3", "odd\nname.py": ""})
    findings = resolve_citations(repository.root, [find_citations("`a.py`")])
    found = find_changed_since(repository.root, [[first, again]], findings)
    assert found == [{first: ("a.py",), again: ("a.py",)}]


@pytest.mark.parametrize("count", [1, 60])
def test_the_number_of_processes_does_not_grow_with_the_verified_commits(
    repository: Repository, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = [repository.commit(**{"a.py": str(number)}) for number in range(count + 1)]
    findings = resolve_citations(repository.root, [find_citations("`a.py`")] * count)
    started = []
    popen = git.subprocess.Popen

    def start(command: list[str], *arguments: object, **options: object) -> object:
        started.append(command)
        return popen(command, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(git.subprocess, "Popen", start)
    found = find_changed_since(repository.root, [[commit] for commit in commits[:-1]], findings)
    assert found == [{commit: ("a.py",)} for commit in commits[:-1]]
    assert len(started) == 3


def test_beyond_the_limits_nothing_is_said(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    verified = repository.commit(**{"a.py": "1"})
    repository.commit(**{"a.py": "2"})
    findings = resolve_citations(repository.root, [find_citations("`a.py`")])
    monkeypatch.setattr("pipeline.features.citations.history.MAX_BYTES", 10)
    assert find_changed_since(repository.root, [[verified]], findings) == [{}]
