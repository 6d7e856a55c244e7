import pytest

from pipeline.text.citations import CitationKind, find_citations


def list_commits(text):
    return [citation.name for citation in find_citations(text) if citation.kind is CitationKind.COMMIT]


@pytest.mark.parametrize("commit", ["5847362621", "deadbeefab", "1a2b3c4d5e"])
def test_a_commit_behind_its_sign_is_one_whatever_its_characters(commit):
    assert list_commits(f"Carts are in `shop/cart.py` (verified @{commit}).") == [commit]


@pytest.mark.parametrize(("named", "found"), [("5847362621", []), ("defaced", []), ("1a2b3c4d5e", ["1a2b3c4d5e"])])
def test_without_the_sign_a_number_or_a_word_is_no_commit(named, found):
    assert list_commits(f"See commit {named}.") == found
