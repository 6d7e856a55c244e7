"""A memory without tags is tagged with its kind and the names in it; such tags are no terms."""

from dataclasses import replace

import pytest

from pipeline.kernel.records import Draft, EntityKind, Kind
from pipeline.kernel.records.digestion import EntityMention
from pipeline.text.memory_terms import derive_tags, drop_derived_tags, drop_repeating_tags, memory_terms
from pipeline.write.prepare import prepare
from pipeline.write.state import state_tag


def mention(name, kind=EntityKind.PRODUCT):
    return EntityMention(kind, name, name, 0, len(name))


@pytest.mark.parametrize(
    ("kind", "names", "expected"),
    [
        (Kind.FACT, ["postgres"], ("postgres",)),
        (Kind.FACT, ["postgres", "redis", "celery", "gevent"], ("postgres", "redis", "celery")),
        (Kind.DECISION, ["postgres", "redis", "celery"], ("postgres", "redis", "decision")),
        (Kind.LESSON, [], ("lesson",)),
        (Kind.FACT, ["Visual Studio Code", "Æther", "日本語", "a" * 31], ("visual-studio-code", "ther")),
        (Kind.FACT, ["redis", "Redis"], ("redis",)),
        (Kind.CODE, ["redis"], ()),
        (Kind.DOCUMENT, ["redis"], ()),
        (Kind.ACTIVITY, ["redis"], ()),
    ],
)
def test_at_most_three_tags_are_derived_from_products_and_the_kind(kind, names, expected):
    assert derive_tags(kind, [mention(name) for name in names]) == expected


@pytest.mark.parametrize("kind", [EntityKind.FILE, EntityKind.DATE, EntityKind.PORT, EntityKind.URL, EntityKind.PERSON])
def test_other_entities_are_no_tags(kind):
    assert derive_tags(Kind.FACT, [mention("x.py", kind)]) == ()


@pytest.mark.parametrize("content", ["We use Postgres 16 for billing", "Postgres läuft auf Port 5433"])
def test_a_tag_that_only_repeats_the_memory_adds_no_term_and_no_state(content):
    memory = prepare(Draft(content, kind=Kind.DECISION)).memory
    tagged = replace(memory, tags=("postgres", "decision"))
    assert drop_repeating_tags(tagged.tags, memory.kind, content) == ()
    assert memory_terms(tagged) == memory_terms(memory)
    assert state_tag(tagged) == state_tag(memory)


@pytest.mark.parametrize(
    ("tags", "names", "own"),
    [
        (("tolls",), [], ("tolls",)),
        (("tolls", "decision"), [], ("tolls",)),
        (("postgres", "redis", "decision"), ["postgres", "redis"], ()),
        (("visual-studio-code", "editor"), ["visual studio code"], ("editor",)),
        (("billing",), ["postgres"], ("billing",)),
    ],
)
def test_user_tag_is_distinguished_from_derived_tags(tags, names, own):
    assert drop_derived_tags(tags, Kind.DECISION, names) == own


@pytest.mark.parametrize("kind", [Kind.FACT, Kind.DECISION, Kind.LESSON, Kind.QA])
def test_every_derived_tag_is_recognized(kind):
    mentions = [mention(name) for name in ("Visual Studio Code", "postgres", "Jira")]
    assert drop_derived_tags(derive_tags(kind, mentions), kind, [one.name for one in mentions]) == ()


def test_a_tag_that_says_more_is_a_term_and_a_state():
    memory = prepare(Draft("We use Postgres 16", kind=Kind.DECISION)).memory
    tagged = replace(memory, tags=("billing", "postgres"))
    assert set(memory_terms(tagged)) - set(memory_terms(memory)) == {"bill", "billing"} & set(memory_terms(tagged))
    assert len(memory_terms(tagged)) > len(memory_terms(memory))
    assert state_tag(tagged) != state_tag(memory)
