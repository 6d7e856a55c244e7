"""Two statements with one canonical key meet, in whatever words: the later one replaces the earlier."""

from dataclasses import replace

import pytest

from pipeline.kernel.records import Draft
from pipeline.kernel.records.extraction import Extraction
from pipeline.text.similarity.choices import MAX_CHARS, read_statement, relate_by_key
from pipeline.text.similarity.pair_classifier import Relation
from pipeline.write.prepare import prepare


def memory(text, author=None, **extraction):
    return replace(prepare(Draft(text, extraction=Extraction(**extraction))).memory, author=author)


def relate(first, second):
    judgements = {relate_by_key(first, second), relate_by_key(second, first)}
    assert len(judgements) == 1
    return next(iter(judgements))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I prefer tabs in Go", "I would rather have spaces in Go"),
        ("I prefer tabs in Go", "From now on, I'd rather use spaces when writing Go code."),
        ("In Go I like tabs, because gofmt writes them", "I really don't like tabs in Go"),
        ("I hate spaces in Go", "I'd prefer spaces in Go files"),
        ("We use npm for the frontend", "Decision: pnpm is used for the frontend, not npm"),
        ("The package manager is npm.", "Please always use pnpm in this project"),
        ("Tests run with jest", "We switched from jest to vitest"),
        ("Ich bevorzuge Tabs in Go", "Ich nutze jetzt lieber Spaces in Go"),
        ("Prefiero tabs en Go", "Uso spaces en Go"),
        ("I want dark mode", "I'd love light mode"),
    ],
)
def test_the_later_of_two_statements_with_one_key_replaces_the_earlier(first, second):
    assert relate(memory(first), memory(second)).relation is Relation.SUPERSEDES


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I prefer tabs in Go", "I prefer tabs in Go"),
        ("I prefer tabs in Go", "I would rather have spaces in Python"),
        ("I prefer tabs", "I would rather have spaces in Go"),
        ("I prefer tabs in Go", "We use spaces in Go"),
        ("I prefer tabs in Go", "I would rather have short functions in Go"),
        ("I prefer tabs in Go", "Should I use spaces in Go?"),
        ("I prefer tabs in Go", "If gofmt is off, I prefer spaces in Go"),
        ("I prefer tabs in Go", "I used spaces in Go"),
        ("I prefer tabs in Go", "I never said that I prefer spaces in Go"),
        ("We use npm for the frontend", "We use pnpm for the docs"),
        ("We use npm", "We use npm or pnpm"),
        ("We use npm", "We use pnpm. The docs use yarn."),
        ("We use npm", f"We use pnpm {'very ' * MAX_CHARS}often"),
    ],
)
def test_statements_about_something_else_do_not_meet(first, second):
    assert relate(memory(first), memory(second)) is None


def test_a_preference_replaces_only_one_of_the_same_person():
    first, second = "I prefer tabs in Go", "I would rather have spaces in Go"
    assert relate(memory(first, "ada"), memory(second, "ada")) is not None
    assert relate(memory(first, "ada"), memory(second, "bob")) is None
    assert relate(memory("We use npm", "ada"), memory("We use pnpm", "bob")) is not None


@pytest.mark.parametrize(
    ("first", "second", "meet"),
    [
        (("Billing listens on port 8123", 8123), ("Billing now listens on port 9000", 9000), True),
        (("The default branch of billing is main", "main"), ("The default branch of billing is trunk", "trunk"), True),
        (("Billing listens on port 8123", 8123), ("Billing listens on port 8123", 8123), False),
        (("Billing listens on port 8123", 8123), ("Orders listens on port 9000", 9000), False),
        (("Billing does not listen on port 8123", 8123), ("Billing listens on port 9000", 9000), False),
        (("The team includes Ana", "Ana"), ("The team includes Bob", "Bob"), False),
        (("Billing listens on port 8123", "TCP"), ("Billing listens on port 9000", "UDP"), False),
    ],
)
def test_the_value_that_an_extractor_found_is_the_value(first, second, meet):
    one, other = (memory(text, value=value) for text, value in (first, second))
    assert (relate(one, other) is not None) is meet


def test_metadata_of_another_shape_is_no_extraction():
    assert read_statement(replace(memory("Billing listens on port 8123"), metadata={"extraction": "8123"})) is None
