"""What two memories are to each other, by their words and a cosine."""

import re

import pytest
from hypothesis import given, strategies as st

from pipeline.text.similarity.normalizer import base_form
from pipeline.text.similarity.pair_classifier import (
    DENIAL_COSINE,
    MERGE_COSINE,
    PAIR_COSINE,
    REPLACEMENT_COSINE,
    Relation,
    classify_pair,
)

SENTENCES = [
    "We use Postgres 16 for the billing service.",
    "The worker retries a failed charge 3 times and waits 30 s.",
    "Deploy from src/deploy/main.py on 4 March 2026 at 10:30.",
    "Marta lives in Lisbon, near port 8080 of v2.1.4.",
    "Ticket ABC-123 is fixed in release 7.",
    "Wir sichern die Datenbank 2 mal am Tag.",
    "Мы храним логи 30 дней.",
]
VERBS = [
    ("The worker retries failed jobs.", "retries"),
    ("Ana works at Siemens.", "works"),
    ("We deploy on Fridays.", "deploy"),
    ("The cache is shared.", "is"),
    ("You must restart the server.", "must"),
]
VOCABULARY = """
    the a we I you is was not never to from of on in for and or Ana Bob Redis staging 3 30s 4 March 2026-01-02 v1.2
    src/a.py use uses used using stop before after if when by , . ? : кэш не 不 läuft nicht
"""
words = st.sampled_from(VOCABULARY.split())
texts = st.one_of(st.lists(words, max_size=12).map(" ".join), st.text(max_size=40))
cosines = st.floats(min_value=-1.0, max_value=1.0)


def relation(first, second, cosine=0.97):
    return classify_pair(first, second, cosine).relation


@given(texts, texts, cosines)
def test_the_order_of_the_two_changes_nothing(first, second, cosine):
    assert classify_pair(first, second, cosine) == classify_pair(second, first, cosine)


@given(texts)
def test_a_text_is_the_same_as_itself(text):
    assert relation(text, text, 1.0) is Relation.SAME


@given(st.sampled_from(SENTENCES), st.data())
def test_another_digit_is_never_the_same(text, data):
    places = [match.start() for match in re.finditer(r"\d", text)]
    if places:
        place = data.draw(st.sampled_from(places))
        digit = data.draw(st.sampled_from([d for d in "0123456789" if d != text[place]]))
        assert relation(text, text[:place] + digit + text[place + 1 :], 1.0) is not Relation.SAME


@pytest.mark.parametrize(("text", "verb"), VERBS)
@pytest.mark.parametrize("negation", ["not", "never", "no longer", "NOT"])
def test_a_negation_is_never_the_same(text, verb, negation):
    assert relation(text, text.replace(verb, f"{verb} {negation}"), 1.0) is not Relation.SAME


@given(texts, texts, st.floats(min_value=-1.0, max_value=MERGE_COSINE, exclude_max=True))
def test_nothing_is_merged_below_the_cosine_for_it(first, second, cosine):
    assert relation(first, second, cosine) is not Relation.SAME


@given(texts, texts, st.floats(min_value=-1.0, max_value=DENIAL_COSINE, exclude_max=True))
def test_dissimilar_pair_is_different(first, second, cosine):
    assert relation(first, second, cosine) is Relation.DIFFERENT


@given(texts, texts, st.floats(min_value=-1.0, max_value=PAIR_COSINE, exclude_max=True))
def test_nothing_waits_below_the_cosine_for_it(first, second, cosine):
    assert relation(first, second, cosine) in (Relation.DIFFERENT, Relation.CONTRADICTS)


def test_no_cosine_is_not_similar():
    assert relation("We use Redis.", "We use Redis.", float("nan")) is Relation.DIFFERENT


@given(st.sampled_from(SENTENCES), st.sampled_from(SENTENCES), cosines)
def test_reasons_hold_nothing_of_the_memories(first, second, cosine):
    for reason in classify_pair(first, second, cosine).reasons:
        assert not set(reason.split()) & {"Postgres", "Marta", "ABC-123", "16", "src/deploy/main.py"}
        assert re.fullmatch(r"[a-z ]+", reason)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("We use Redis for caching.", "We're using Redis for caching"),
        ("The timeout is 30 s.", "The timeout is thirty seconds."),
        ("Don't deploy on Fridays.", "Never deploy on Fridays."),
        ("Tests run on Linux.", "On Linux, tests run."),
        ("The port of the server is 80.", "The server's port is 80."),
        ("Marek owns the parser.", "The parser is owned by Marek."),
        ("We store dates in UTC.", "Dates are stored in UTC."),
        ("Ana was born on 4 March.", "Ana was born on March 4th."),
        ("The frontend uses the read-only API.", "The front end uses the read only API."),
        ("You have to restart it.", "You must restart it."),
    ],
)
def test_light_rewordings_are_the_same(first, second):
    assert classify_pair(first, second, 0.95).reasons == ()
    assert relation(first, second, 0.95) is Relation.SAME
    assert relation(first, second, 0.85) is Relation.BORDERLINE


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("Retry 3 times.", "Retry 5 times.", "numbers differ"),
        ("Retry 3 times after 5 s.", "Retry 5 times after 3 s.", "roles swapped"),
        ("We met on Monday.", "We met on Tuesday.", "dates differ"),
        ("Edit src/a.py now.", "Edit src/b.py now.", "identifiers differ"),
        ("We met Jonas there.", "We met Sandra there.", "names differ"),
        ("Send it with a note.", "Send it without a note.", "negation differs"),
        ("The first page lists it.", "The last page lists it.", "opposites"),
        ("The staging host has it.", "The production host has it.", "environments differ"),
        ("Orders calls stock.", "Stock calls orders.", "roles swapped"),
        ("He said it works.", "She said it works.", "persons differ"),
        ("They told us.", "We told them.", "persons differ"),
    ],
)
def test_pair_that_must_not_merge_names_the_reason(first, second, reason):
    judgement = classify_pair(first, second, 0.99)
    assert judgement.relation is not Relation.SAME
    assert reason in judgement.reasons


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("The API uses JWT.", "The API uses JWT, and tokens expire after one hour.", "one contains more"),
        ("The client retries on a timeout.", "The client retries on a conflict.", "words differ"),
        ("Backups for staging on disk.", "Backups for disk on staging.", "order differs"),
        ("We used Jenkins for builds.", "We use Jenkins for builds.", "tense differs"),
        ("Vote for the plan.", "Vote on the plan.", "prepositions differ"),
        ("Ana works. On Fridays Bob cooks.", "Ana works on Fridays. Bob cooks.", "sentences differ"),
        ("The index is healthy?", "The index is healthy.", "one asks"),
        ("My parser is slow.", "The parser is slow.", "persons differ"),
    ],
)
def test_borderline_pair_names_the_reason(first, second, reason):
    judgement = classify_pair(first, second, 0.97)
    assert judgement.relation is Relation.BORDERLINE
    assert reason in judgement.reasons


DENIALS = [
    ("The worker retries jobs.", "The worker does not retry jobs."),
    ("Always squash commits.", "Never squash commits."),
    ("Telemetry is enabled.", "Telemetry is disabled."),
    ("La taille du cache est 200.", "La taille du cache est 400."),
    ("The job runs on Mondays.", "The job runs on Thursdays."),
    ("Use tabs instead of spaces.", "Use spaces instead of tabs."),
    ("Der Server läuft nachts.", "Der Server läuft nachts nicht."),
    ("Мы используем Redis.", "Мы не используем Redis."),
]
OTHER_VALUES = [
    ("The pool size is 20.", "The pool size is 50."),
    ("Marta lives in Lisbon.", "Marta lives in Madrid."),
    ("The gateway listens on 8080.", "The gateway listens on 9090."),
    ("The owner of orders_api is Marta.", "The owner of orders_api is Jonas."),
    ("The default of MAX_BATCH is 500.", "The default of MAX_BATCH is 1000."),
]


@pytest.mark.parametrize(("first", "second"), DENIALS)
def test_a_denial_of_the_same_subject_contradicts(first, second):
    assert relation(first, second, 0.9) is Relation.CONTRADICTS


@pytest.mark.parametrize(("first", "second"), OTHER_VALUES)
def test_another_value_of_a_single_valued_slot_supersedes(first, second):
    assert relation(first, second, 0.9) is Relation.SUPERSEDES


@pytest.mark.parametrize(("first", "second"), DENIALS + OTHER_VALUES)
def test_pair_below_the_contradiction_threshold_is_different(first, second):
    assert relation(first, second, DENIAL_COSINE - 0.01) is Relation.DIFFERENT


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("If the tests pass, deploy.", "If the tests don't pass, deploy."),
        ("Open issues are triaged.", "Closed issues are triaged."),
        ("I like tea.", "I like coffee."),
        ("The build was red on Monday.", "The build was red on Tuesday."),
        ("The staging limit is 5.", "The production limit is 9."),
        ("Is the cache shared?", "The cache is not shared."),
    ],
)
def test_compatible_statements_do_not_contradict(first, second):
    assert relation(first, second, 0.95) not in (Relation.CONTRADICTS, Relation.SAME)


@pytest.mark.parametrize("unit", ["a ", "-", "a-b", "'s", "中", "1,000", "a. ", "@ ", "x of y by z is used ", "not "])
def test_long_texts_are_read_in_linear_time(unit):
    """The suite's timeout ends a quadratic search."""
    text = (unit * 10_000)[:10_000]
    assert relation(text, f"{text[:-9]} 7 other", 0.95) is not Relation.SAME
    assert relation(text, text[::-1] + "!", 0.95) in set(Relation)


@pytest.mark.parametrize(
    ("form", "base"),
    [
        *[("uses", "use"), ("using", "use"), ("stopped", "stop"), ("caches", "cache"), ("policies", "policy")],
        *[("pips", "pip"), ("pipes", "pipe"), ("chosen", "choose"), ("staging", "staging"), ("redis", "redis")],
    ],
)
def test_inflections_have_one_base(form, base):
    assert base_form(form) == base


def test_short_statement_with_another_value_supersedes():
    old, new = "Start test names with `it_`", "From now on, start test names with `should_`."
    assert relation(old, new, REPLACEMENT_COSINE) is Relation.SUPERSEDES
    assert relation(old, new, REPLACEMENT_COSINE - 0.01) is Relation.DIFFERENT
