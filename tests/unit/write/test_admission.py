import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from pipeline.kernel.records import MAX_CONTENT_CHARS, Kind, Scope, ScopeKind, Source
from pipeline.kernel.records.extraction import Disposition, Extraction
from pipeline.write import admission
from pipeline.write.admission import DELIBERATE, FEATURES, AdmissionVerdict, Offer, admit

OFFERS = json.loads((Path(__file__).parents[2] / "data" / "admission.json").read_text(encoding="utf-8"))["offers"]
CLASSES = {AdmissionVerdict.ACTIVE: "active", AdmissionVerdict.CANDIDATE: "middle", AdmissionVerdict.REJECTED: "low"}
PARTS = ("calibration", "test")

FACT = Offer(
    content="The staging database listens on port 5433, not on 5432.",
    kind=Kind.FACT,
    source=Source.AMBIENT,
    scope=Scope(),
    importance=None,
    redactions=0,
    repeats=0,
    contradicts=False,
)
CHATTER = replace(FACT, content="Let me look at the file", source=Source.AGENT)
MIDDLING = replace(FACT, content="Orders use soft delete")

sources = st.sampled_from(Source)
offers = st.builds(
    Offer,
    content=st.text(min_size=1, max_size=200) | st.sampled_from([one["content"] for one in OFFERS]),
    kind=st.sampled_from(Kind),
    source=sources,
    scope=st.builds(Scope, st.sampled_from(ScopeKind), st.none() | st.just("someone")),
    importance=st.none() | st.floats(0, 1),
    redactions=st.integers(0, 5),
    repeats=st.integers(0, 10),
    contradicts=st.booleans(),
    extraction=st.just(Extraction()),
)
extractions = st.builds(
    Extraction, confidence=st.none() | st.floats(0, 1), disposition=st.none() | st.sampled_from(Disposition)
)


def offer(one):
    kind, source = Kind(one.get("kind", "fact")), Source(one["source"])
    redactions = one["content"].count("[REDACTED:")
    return replace(FACT, content=one["content"], kind=kind, source=source, redactions=redactions)


def classify(one, *, review=True):
    return CLASSES[admit(offer(one), review=review).verdict]


def part(name):
    return [one for one in OFFERS if one["part"] == name]


@pytest.mark.parametrize("name", PARTS)
def test_active_offers_are_classified_as_labelled(name):
    agreed = [(classify(one) == "active") == (one["label"] == "active") for one in part(name)]
    assert sum(agreed) / len(agreed) >= 0.9


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("source", ["agent", "ambient"])
def test_each_source_that_is_judged_is_judged_well(name, source):
    agreed = [
        (classify(one) == "active") == (one["label"] == "active") for one in part(name) if one["source"] == source
    ]
    assert sum(agreed) / len(agreed) >= 0.9


def test_other_languages_lose_nothing():
    missed = [one["content"] for one in OFFERS if one["language"] != "en" and one["label"] == "active" != classify(one)]
    assert len(missed) <= 2


@pytest.mark.parametrize("name", PARTS)
def test_the_parts_have_every_class_source_and_some_languages(name):
    counts = Counter((one["source"], one["label"]) for one in part(name))
    assert {("ambient", label) for label in ("active", "middle", "low")} <= counts.keys()
    assert {("agent", "active"), ("agent", "low"), ("user", "active"), ("import", "active")} <= counts.keys()
    assert {"en", "de", "es", "ru", "zh"} <= {one["language"] for one in part(name)}
    assert len(part(name)) >= 60


def test_every_offer_is_unique():
    counts = Counter((one["content"], one["source"]) for one in OFFERS)
    assert [key for key, count in counts.items() if count > 1] == []


@given(offers, st.booleans())
def test_deliberate_memory_is_accepted(given_offer, review):
    if given_offer.source in DELIBERATE and not given_offer.contradicts:
        assert admit(given_offer, review=review).verdict is AdmissionVerdict.ACTIVE


@given(offers)
def test_every_rejection_and_every_doubt_has_a_reason(given_offer):
    admission = admit(given_offer, review=True)
    assert admission.verdict is AdmissionVerdict.ACTIVE or admission.reasons


@given(offers)
def test_reasons_are_fixed_phrases(given_offer):
    phrases = {feature.weakness for feature in FEATURES} | {
        *(admission.NOTHING_LEFT, admission.ONLY_SECRETS, admission.REVIEW_IS_OFF, admission.OFFERED_REPEATEDLY),
        *(admission.DELIBERATELY_WRITTEN, admission.UNSURE, admission.ADVISED_REVIEW, admission.ADVISED_DROP),
    }
    for review in (True, False):
        assert set(admit(given_offer, review=review).reasons) <= phrases


@given(offers, extractions)
def test_extractor_may_drop_any_offer_but_accept_only_with_certainty(given_offer, extraction):
    advised = admit(replace(given_offer, extraction=extraction), review=True)
    if extraction.disposition is Disposition.DROP:
        assert (advised.verdict, advised.reasons[0]) in (
            (AdmissionVerdict.REJECTED, admission.ADVISED_DROP),
            (AdmissionVerdict.REJECTED, admission.NOTHING_LEFT),
            (AdmissionVerdict.REJECTED, admission.ONLY_SECRETS),
        )
    elif extraction.disposition is Disposition.REVIEW or (extraction.confidence or 1) < admission.SURE_FROM:
        assert advised.verdict is not AdmissionVerdict.ACTIVE
    elif extraction.confidence is None:
        assert advised == admit(given_offer, review=True)


@given(offers, st.floats(0.5, 1), st.floats(0.5, 1))
def test_a_surer_extractor_scores_no_less(given_offer, confidence, other):
    unsure, sure = (
        admit(replace(given_offer, extraction=Extraction(confidence=each)), review=True)
        for each in sorted((confidence, other))
    )
    assert unsure.score <= sure.score


def test_an_extractor_that_is_sure_decides_where_the_text_does_not():
    assert admit(MIDDLING, review=True).verdict is AdmissionVerdict.CANDIDATE
    sure = replace(MIDDLING, extraction=Extraction(confidence=0.95))
    assert admit(sure, review=True).verdict is AdmissionVerdict.ACTIVE
    unsure = admit(replace(MIDDLING, source=Source.USER, extraction=Extraction(confidence=0.3)), review=True)
    assert (unsure.verdict, unsure.reasons[0]) == (AdmissionVerdict.CANDIDATE, admission.UNSURE)


@given(offers)
def test_without_review_exactly_the_middle_is_rejected(given_offer):
    with_review, without = admit(given_offer, review=True), admit(given_offer, review=False)
    assert with_review.score == without.score
    if with_review.verdict is AdmissionVerdict.CANDIDATE:
        assert without.verdict is AdmissionVerdict.REJECTED
        assert without.reasons[-1] == admission.REVIEW_IS_OFF
    else:
        assert with_review == without


@given(offers)
def test_scores_and_features_lie_between_nothing_and_one(given_offer):
    assert 0 <= admit(given_offer, review=True).score <= 1
    assert all(0 <= feature.value(given_offer) <= 1 for feature in FEATURES)


def test_the_seven_weights_add_up_to_one():
    assert len(FEATURES) == 7
    assert sum(feature.weight for feature in FEATURES) == pytest.approx(1)


@pytest.mark.parametrize(
    ("repeats", "verdict"),
    [(0, AdmissionVerdict.REJECTED), (3, AdmissionVerdict.CANDIDATE), (30, AdmissionVerdict.CANDIDATE)],
)
def test_insistence_lifts_chatter_by_one_class_only(repeats, verdict):
    assert admit(replace(CHATTER, repeats=repeats), review=True).verdict is verdict


def test_insistence_lifts_the_middle_to_active():
    assert admit(MIDDLING, review=True).verdict is AdmissionVerdict.CANDIDATE
    assert admit(replace(MIDDLING, repeats=3), review=False).verdict is AdmissionVerdict.ACTIVE


@pytest.mark.parametrize("source", sorted(set(Source) - {Source.USER}))
@pytest.mark.parametrize("repeats", [0, 3])
def test_a_contradiction_waits_for_a_person_however_often_it_is_offered(source, repeats):
    contradiction = replace(FACT, source=source, kind=Kind.KEYED_FACT, contradicts=True, repeats=repeats)
    assert admit(replace(contradiction, contradicts=False), review=True).verdict is AdmissionVerdict.ACTIVE
    admission = admit(contradiction, review=True)
    assert admission.verdict is AdmissionVerdict.CANDIDATE
    assert "contradicts a current fact" in admission.reasons


def test_the_user_may_correct_a_fact():
    assert admit(replace(FACT, source=Source.USER, contradicts=True), review=False).verdict is AdmissionVerdict.ACTIVE


@pytest.mark.parametrize(
    "change", [{"importance": 0.3}, {"kind": Kind.LESSON}, {"kind": Kind.DECISION}, {"kind": Kind.GOAL}]
)
def test_a_given_importance_or_a_telling_kind_speaks_for_keeping(change):
    assert admit(replace(MIDDLING, **change), review=False).verdict is AdmissionVerdict.ACTIVE


@given(offers, st.integers(0, 4))
def test_secrets_never_speak_for_keeping(given_offer, more):
    secretive = replace(given_offer, redactions=given_offer.redactions + more)
    assert admit(secretive, review=True).score <= admit(given_offer, review=True).score


def test_an_agents_note_of_little_but_secrets_is_not_kept():
    note = replace(CHATTER, content="key [REDACTED:aws-access-key] [REDACTED:jwt]", redactions=2)
    assert admit(note, review=False).verdict is AdmissionVerdict.REJECTED
    assert "mostly secrets" in admit(note, review=False).reasons


@pytest.mark.parametrize("content", ["[REDACTED:jwt]", "“[REDACTED:jwt]”, [REDACTED:aws-access-key]!"])
def test_automatic_text_of_only_secrets_is_rejected(content):
    for source in set(Source) - DELIBERATE:
        assert admit(replace(FACT, content=content, source=source), review=True).reasons == (admission.ONLY_SECRETS,)


def test_an_answer_keeps_a_text_that_ends_with_a_question():
    asked = replace(FACT, content="Where do the exports of the nightly job end up, in the bucket or on the share?")
    assert admit(asked, review=True).verdict is not AdmissionVerdict.ACTIVE
    assert admit(replace(asked, kind=Kind.QA), review=True).verdict is AdmissionVerdict.ACTIVE


@pytest.mark.parametrize(
    "unit", ["a", "a ", "at a", "a/", "=", "1.", "\n", "?", "ok ", "running ", "_", "的", '"', "a-", "(", "at :1"]
)
def test_hostile_text_of_full_length_is_read(unit):
    content = (unit * MAX_CONTENT_CHARS)[: MAX_CONTENT_CHARS - 1] + "!"
    assert admit(replace(FACT, content=content), review=True).verdict in set(AdmissionVerdict)


@pytest.mark.parametrize(
    "beside",
    [
        "Let me get started. ",
        "Could you look at the logs? ",
        "I'll rename the queue tomorrow. ",
        "Good. Next up is billing. ",
    ],
)
def test_transient_text_next_to_a_fact_does_not_reject_it(beside):
    stated = "The shop runs on FastAPI with PostgreSQL, and Redis caches its carts."
    assert admit(replace(FACT, content=stated, source=Source.AGENT), review=False).verdict is AdmissionVerdict.ACTIVE
    both = replace(FACT, content=beside + stated, source=Source.AGENT)
    assert admit(both, review=False).verdict is AdmissionVerdict.ACTIVE
    alone = replace(FACT, content=beside.strip(), source=Source.AGENT)
    assert admit(alone, review=False).verdict is AdmissionVerdict.REJECTED
