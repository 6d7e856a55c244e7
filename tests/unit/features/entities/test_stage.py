import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from pipeline.features.entities.stage import MAX_ENTITIES, SpacyTagger, extract_batch, extract_from_code
from pipeline.kernel.errors import StageFailed
from pipeline.kernel.records import EntityKind
from pipeline.kernel.records.digestion import EntityMention
from pipeline.text.names import canonical_entity_name
from tests.fakes.tagger import FakeTagger

PERSON, ORGANISATION, PLACE = EntityKind.PERSON, EntityKind.ORGANISATION, EntityKind.PLACE
PRODUCT, DATE, IDENTIFIER, NAME = EntityKind.PRODUCT, EntityKind.DATE, EntityKind.IDENTIFIER, EntityKind.NAME


class MarksOnly:
    """Tags every place where one given surface stands."""

    def __init__(self, surface: str, kind: EntityKind) -> None:
        self.surface, self.kind = surface, kind

    def tag(self, texts):
        return [list(self._marks(text)) for text in texts]

    def _marks(self, text):
        start = text.find(self.surface)
        while start >= 0:
            end = start + len(self.surface)
            yield EntityMention(self.kind, self.surface, self.surface, start, end)
            start = text.find(self.surface, end)


def extract(text, tagger):
    return extract_batch([text], tagger)[0]


def pairs(mentions):
    return [(mention.kind, mention.name) for mention in mentions]


def judge_mark(text, surface, kind):
    return pairs(extract(text, MarksOnly(surface, kind)))


def test_rules_and_tagger_meet_in_order_of_place():
    text = "Reviewed src/app.py with Ada Byron at Acme near Oslo."
    assert pairs(extract(text, FakeTagger())) == [
        (EntityKind.FILE, "src/app.py"),
        (PERSON, "ada byron"),
        (ORGANISATION, "acme"),
        (PLACE, "oslo"),
    ]


def test_a_batch_reaches_the_tagger_at_once_and_keeps_its_order():
    tagger = FakeTagger()
    found = extract_batch(["met with Quirin", "nothing here", "met with Tarnel"], tagger)
    assert [pairs(mentions) for mentions in found] == [[(PERSON, "quirin")], [], [(PERSON, "tarnel")]]
    assert len(tagger.batches) == 1


def test_no_texts_give_no_lists():
    assert extract_batch([], FakeTagger()) == []


def test_repeated_name_is_extracted_once_at_its_first_place():
    text = "PR 42 was hard, so PR #42 was reverted"
    (mention,) = extract(text, FakeTagger())
    assert (mention.surface, mention.start) == ("PR 42", 0)


def test_too_many_entities_are_cut_and_rules_go_before_names():
    text = "met with Quirin. " + " ".join(f"field_{n}" for n in range(MAX_ENTITIES + 10))
    mentions = extract(text, FakeTagger())
    assert len(mentions) == MAX_ENTITIES
    assert {mention.kind for mention in mentions} == {IDENTIFIER}


@pytest.mark.parametrize("text", ["Falke schreibt in die Tabelle und wartet", "We restarted Falke at night"])
def test_code_names_of_the_workspace_are_products(text):
    (mention,) = extract_batch([text], FakeTagger(), frozenset({"falke"}))[0]
    assert (mention.kind, mention.name) == (PRODUCT, "falke")
    assert extract_batch([text], FakeTagger()) == [[]]


def test_a_code_name_that_begins_sentences_needs_its_cue():
    assert extract_batch(["Go to the top"], FakeTagger(), frozenset({"go"})) == [[]]


def test_a_word_in_lower_case_is_no_code_name():
    assert extract_batch(["a heron by the lake"], FakeTagger(), frozenset({"heron"})) == [[]]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Caroline: Hey, how are you?", ["caroline"]),
        ("[8 May 2023] Melanie Smith: fine", ["melanie smith"]),
        ("Ann: hello\nBob: hi", ["ann", "bob"]),
        ("Note: use tabs", []),
        ("Open Question: who knows", []),
        ("User: hi\nAssistant: hello", []),
        ("TODO: write it", []),
        ("Postgres: use 16", []),
        ("Backend: slow\nFrontend: fine", []),
        ("Zorbel: hello\nPim: hi\nZorbel: bye", ["zorbel"]),
        ("Quirin:no space", []),
        ("she said Quirin: hey", []),
    ],
)
def test_speaker_at_the_start_of_a_line_is_a_person(text, names):
    found = extract(text, FakeTagger())
    assert [mention.name for mention in found if mention.kind is PERSON] == names


def test_the_tagger_sees_no_speaker_label_and_offsets_still_hold():
    tagger = FakeTagger()
    text = "Ann: I met with Bob at Quoll"
    mentions = extract(text, tagger)
    assert tagger.batches == [["     I met with Bob at Quoll"]]
    assert [text[m.start : m.end] for m in mentions] == ["Ann", "Bob", "Quoll"]


@pytest.mark.parametrize(
    ("text", "surface", "kind", "expected"),
    [
        ("The Acme board met", "The Acme", ORGANISATION, [(ORGANISATION, "acme")]),
        ("Bob's laptop", "Bob's", PERSON, [(PERSON, "bob")]),
        ("read “The Lean Startup”", "“The Lean Startup”", PRODUCT, [(NAME, "lean startup")]),
        ("so ya, Melanie knows", "ya, Melanie", PERSON, [(PERSON, "melanie")]),
        ("the redis thing", "redis", PERSON, [(PRODUCT, "redis")]),
        ("kids & work matter", "kids & work", ORGANISATION, []),
        ("count 42 here", "42", ORGANISATION, []),
        ("a{b} Foo{x}", "Foo{x}", ORGANISATION, []),
        ("And Then it broke", "And Then", ORGANISATION, []),
        ("on Monday we met", "Monday", PERSON, []),
        ("LoadGuard is slow", "LoadGuard", ORGANISATION, [(IDENTIFIER, "LoadGuard")]),
        ("`loadguard` is what Loadguard is", "Loadguard", ORGANISATION, [(IDENTIFIER, "loadguard")]),
        ("kept in Redis now", "Redis", PERSON, [(PRODUCT, "redis")]),
        ("Redis cache is cold", "Redis", PERSON, [(PRODUCT, "redis")]),
        ("deployed with Docker", "Docker", PERSON, [(PRODUCT, "docker")]),
        ("talked with Docker", "Docker", PERSON, [(PRODUCT, "docker")]),
        ("talked with Quirin", "Quirin", ORGANISATION, [(PERSON, "quirin")]),
        ("Oxbow top is slow", "Oxbow", PERSON, [(NAME, "oxbow")]),
        ("Oxbow is our ingestion service", "Oxbow", PERSON, [(PRODUCT, "oxbow")]),
        ("the customer Quirin", "Quirin", PERSON, [(ORGANISATION, "quirin")]),
        ("use Celery", "Celery", ORGANISATION, [(PRODUCT, "celery")]),
        ("lives in Oslo", "Oslo", PLACE, [(PLACE, "oslo")]),
        ("Django ORM is nice", "Django ORM", PERSON, [(PRODUCT, "django")]),
        ("the JWT expires", "JWT", ORGANISATION, []),
        ("she works at IBM", "IBM", ORGANISATION, [(ORGANISATION, "ibm")]),
        ("in the UK", "UK", PLACE, [(PLACE, "uk")]),
        ("Glad to hear", "Glad", PERSON, []),
        ("I told Glad to come", "Glad", PERSON, [(PERSON, "glad")]),
        ("came yesterday", "yesterday", DATE, []),
        ("came last March", "last March", DATE, []),
        ("since the summer of 2021", "the summer of 2021", DATE, [(DATE, "summer of 2021")]),
        ("since 2019", "2019", DATE, [(DATE, "2019")]),
        ("on 3 March 2025", "3 March 2025", DATE, [(DATE, "2025-03-03")]),
    ],
)
def test_tagger_mistakes_of_a_news_model_are_corrected(text, surface, kind, expected):
    assert judge_mark(text, surface, kind) == expected


def test_speaker_remains_a_person_despite_the_tagger():
    text = "Ann: hello\nBob: I saw Ann today"
    assert judge_mark(text, "Ann", ORGANISATION) == [(PERSON, "ann"), (PERSON, "bob")]


class TagsAnything:
    """Gives the spans that it is told to give, cut to the text."""

    def __init__(self, spans) -> None:
        self.spans = spans

    def tag(self, texts):
        return [[self._span(text, *span) for span in self.spans if span[1] < len(text)] for text in texts]

    @staticmethod
    def _span(text, kind, start, length):
        end = min(len(text), start + length)
        return EntityMention(kind, text[start:end], text[start:end], start, end)


@given(
    st.one_of(st.text(max_size=120), st.text(alphabet="Ab:. '\n`-_9", max_size=80)),
    st.lists(
        st.tuples(
            st.sampled_from([PERSON, ORGANISATION, PLACE, PRODUCT, DATE]),
            st.integers(0, 100),
            st.integers(1, 20),
        ),
        max_size=8,
    ),
)
def test_any_text_under_any_tags_gives_exact_bounded_distinct_mentions(text, spans):
    mentions = extract(text, TagsAnything(spans))
    assert len({(m.kind, m.name) for m in mentions}) == len(mentions) <= MAX_ENTITIES
    for mention in mentions:
        assert text[mention.start : mention.end] == mention.surface != ""
        assert mention.name
        assert canonical_entity_name(mention.kind, mention.name) == mention.name


@pytest.mark.timeout(20)
@pytest.mark.parametrize("unit", ["some", "A: b\n", "the ", "Ab ", "a, ", "- ", "A.", "'s"])
def test_hostile_spans_finish(unit):
    text = (unit * 10_000)[:10_000] + "{"
    extract(text, TagsAnything([(PERSON, 0, len(text)), (DATE, 0, len(text))]))


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("The old port is closed. It was next to src/Door.py, and I said so.", False),
        ("nothing with a capital letter", False),
        ("Alice: and then we left", False),
        ("", False),
        ("The old port of Quoll is closed.", True),
        ("It was born in the spring of 2019.", True),
        ("we ate crêpes", True),
        ("Alice: and then Quirin left", True),
        ("Der Hafen von Quoll ist seit gestern geschlossen.", False),
    ],
)
def test_a_tagger_is_asked_only_where_a_name_could_be_left(text, asked):
    tagger = FakeTagger()
    extract_batch(["near Quoll", text, "near Tarn"], tagger)
    assert len(tagger.batches[0]) == 2 + asked


def test_tagger_results_stay_with_their_texts():
    found = extract_batch(["no name here", "near Rome", "none", "at Acme"], FakeTagger())
    assert [pairs(mentions) for mentions in found] == [[], [(PLACE, "rome")], [], [(ORGANISATION, "acme")]]


@pytest.fixture(scope="module")
def spacy_tagger():
    return SpacyTagger.load()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Sarah Chen left Boston for London.",
            {(PERSON, "sarah chen"), (PLACE, "boston"), (PLACE, "london")},
        ),
        ("Tom works at Google in Berlin.", {(PERSON, "tom"), (ORGANISATION, "google"), (PLACE, "berlin")}),
        ("Caroline: I met Dr. Evans yesterday.", {(PERSON, "caroline"), (PERSON, "evans")}),
        (
            "We moved sessions to Redis; Bob Miller approved it on 3 March 2025.",
            {(PRODUCT, "redis"), (PERSON, "bob miller"), (DATE, "2025-03-03")},
        ),
        (
            "LoadGuard in src/guard.py raises E_LIMIT.",
            {(IDENTIFIER, "LoadGuard"), (EntityKind.FILE, "src/guard.py"), (IDENTIFIER, "E_LIMIT")},
        ),
    ],
)
def test_spacy_names_people_and_places(spacy_tagger, text, expected):
    assert set(pairs(extract(text, spacy_tagger))) == expected


def test_spacy_tags_a_batch_as_it_tags_each_text(spacy_tagger):
    texts = ["Alice met Bob in Paris.", "", "\u200b 🎉", "Nothing named here.", "Ann: see you in Rome"]
    assert extract_batch(texts, spacy_tagger) == [extract(text, spacy_tagger) for text in texts]


def test_a_long_document_is_tagged_at_its_head_only(spacy_tagger):
    text = "Quirin Baxley lives in Ashford. " + "and so on " * 2_500 + "Doris Baxley met Hugh Ashby."
    names = {mention.name for mention in extract(text, spacy_tagger)}
    assert "quirin baxley" in names
    assert not any("ashby" in name for name in names)


NAMED = {PERSON, ORGANISATION, PLACE, PRODUCT, NAME}
LABELLED = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "data" / "entity_kinds.jsonl").read_text(encoding="utf-8").splitlines()
]


def judge_mention(mention, labels):
    """Tell whether labels bear a mention out; None for what spelling gives away and nobody labelled."""
    over = [one for one in labels if one["start"] < mention.end and mention.start < one["start"] + len(one["mention"])]
    if mention.kind not in NAMED and not over:
        return None
    inside = [
        one for one in over if one["start"] <= mention.start and mention.end <= one["start"] + len(one["mention"])
    ]
    return any(mention.kind in {NAME, one["kind"]} for one in inside)


@pytest.mark.parametrize("part", ["dev", "test"])
def test_kinds_are_those_that_people_give(spacy_tagger, part):
    notes = [note for note in LABELLED if note["part"] == part]
    judged, right, labelled = [], 0, 0
    for note, found in zip(notes, extract_batch([note["text"] for note in notes], spacy_tagger), strict=True):
        judged += [(mention.kind, judge_mention(mention, note["mentions"])) for mention in found]
        right += sum(bool(judge_mention(one, note["mentions"])) for one in found if one.kind is not NAME)
        labelled += len({(one["kind"], one["mention"]) for one in note["mentions"]})
    sure = [good for kind, good in judged if good is not None and kind is not NAME]
    names = [good for _, good in judged if good is not None]
    assert sum(sure) / len(sure) >= 0.95
    assert sum(names) / len(names) >= 0.9
    assert right / labelled >= 0.85


MENTIONS = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "data" / "entity_mentions.jsonl").read_text(encoding="utf-8").splitlines()
]
# Not labelled: they are no names.
UNLABELLED = {EntityKind.VERSION, EntityKind.PORT, EntityKind.DATE, EntityKind.COMMAND, EntityKind.URL}


@pytest.mark.parametrize("part", ["dev", "test"])
def test_names_in_plain_text_are_those_that_people_see(spacy_tagger, part):
    notes = [note for note in MENTIONS if note["part"] == part]
    right, found, labelled = 0, 0, 0
    for note, mentions in zip(notes, extract_batch([note["text"] for note in notes], spacy_tagger), strict=True):
        # Of several mentions of an entity the first is linked.
        wanted = {one["mention"]: one["start"] for one in reversed(note["mentions"])}
        given = [(one.surface, one.start) for one in mentions if one.kind not in UNLABELLED]
        right += len(wanted.items() & set(given))
        found += len(given)
        labelled += len(wanted)
    assert right / found >= 0.9
    assert right / labelled >= 0.8


def test_a_missing_model_is_a_failed_stage(monkeypatch):
    monkeypatch.setattr("pipeline.features.entities.stage._MODEL", "no_such_model")
    with pytest.raises(StageFailed, match="no_such_model"):
        SpacyTagger.load()


@pytest.mark.parametrize("label", ["Imports", "Constants", "Private", "Tests", "Fields"])
def test_outline_labels_yield_no_person_entities(label):
    outline = f"web/app.py: Answers requests.\ndef serve(port) (l. 3): Serve.\n{label}: json, PORT (l. 1)."
    found = extract_from_code(outline)
    assert (EntityKind.FILE, "web/app.py") in pairs(found)
    assert EntityKind.PERSON not in {mention.kind for mention in found}
    assert label.casefold() not in {mention.name.casefold() for mention in found}
