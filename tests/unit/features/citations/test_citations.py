import pytest

from pipeline.features.citations.parser import CitationKind, find_citations


def list_commits(text):
    return [citation.name for citation in find_citations(text) if citation.kind is CitationKind.COMMIT]


@pytest.mark.parametrize("commit", ["5847362621", "deadbeefab", "1a2b3c4d5e"])
def test_commit_after_an_at_sign_is_a_citation_for_any_characters(commit):
    assert list_commits(f"Carts are in `shop/cart.py` (verified @{commit}).") == [commit]


@pytest.mark.parametrize(("named", "found"), [("5847362621", []), ("defaced", []), ("1a2b3c4d5e", ["1a2b3c4d5e"])])
def test_without_the_sign_a_number_or_a_word_is_no_commit(named, found):
    assert list_commits(f"See commit {named}.") == found


def list_current(text):
    return [citation.name for citation in find_citations(text) if citation.is_current]


@pytest.mark.parametrize(
    "text",
    [
        "We removed these settings:\n\n- `work_batch`\n- `llm_timeout_s`",
        "**No longer used:**\n* `work_batch`, and\n  `llm_timeout_s`",
        "## Removed\n\n### Settings\n\n- `work_batch` and `llm_timeout_s` of the worker",
        "- Settings `work_batch` and `llm_timeout_s`",
    ],
)
def test_names_in_a_list_about_the_past_are_not_current(text):
    assert [citation.name for citation in find_citations(text)] == ["work_batch", "llm_timeout_s"]
    assert list_current(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "Settings of the worker:\n- `work_batch`",
        "## Settings\n- `work_batch`",
        "## Removed\n- `old_name`\n\n## Settings\n- `work_batch`",
        "- `work_batch`: items at once",
        "- **`work_batch`** — items at once",
        "# Browser history\n\n## Worker\n- `work_batch`",
        "## Worker\n```\n# removed\n```\n`work_batch` is read.",
        "It was removed:\n- `old_name`\n\nThe worker reads `work_batch`.",
    ],
)
def test_names_in_other_lists_are_current(text):
    assert list_current(text) == ["work_batch"]


def test_link_target_is_current_regardless_of_its_sentence():
    assert list_current("It never waits ([why](docs/no-waiting.md#reasons)), unlike `docs/old.md`.") == [
        "docs/no-waiting.md"
    ]
    assert list_current("![The map](docs/screenshots/map.png)") == ["docs/screenshots/map.png"]


@pytest.mark.parametrize("mark", ["`work_batch`", ":setting:`~worker.work_batch`", ":func:`!work_batch`"])
def test_names_are_read_in_the_marks_of_markdown_and_of_restructured_text(mark):
    assert list_current(f"The worker reads {mark}.") == ["work_batch"]
