"""What the multilingual encoder makes of the labelled workspace: answers across languages, and silence otherwise."""

import pytest

from pipeline.index.encoder import OnnxEncoder
from pipeline.text.languages import may_be_foreign
from tests.fakes.in_process import fast_settings
from tests.fakes.workspace import load_labelled, open_labelled_workspace

# A little below what is reached, as another processor rounds differently: see decision 0020 for the figures.
FOUND = 0.80
SILENT = {"English": 0.34, "other": 0.46}


@pytest.fixture(scope="module")
def workspace(multilingual_model, tmp_path_factory):
    settings = fast_settings(tmp_path_factory.mktemp("languages"))
    with open_labelled_workspace(settings, OnnxEncoder.load(multilingual_model, threads=1)) as opened:
        yield opened


def test_a_question_finds_its_answer_in_another_language(workspace):
    questions = load_labelled("cross_language.json")
    found = [question["memory"] in workspace.find_ids(question["text"], 10) for question in questions]
    assert sum(found) / len(found) >= FOUND


def test_unknown_topics_are_silent_in_many_languages(workspace):
    silent = {"English": [], "other": []}
    for message in load_labelled("messages.json"):
        if not message["relevant"]:
            language = "other" if may_be_foreign(message["text"]) else "English"
            silent[language].append(workspace.ask(message["text"]).hits == ())
    shares = {language: sum(quiet) / len(quiet) for language, quiet in silent.items()}
    assert all(shares[language] >= least for language, least in SILENT.items()), shares


@pytest.mark.parametrize(
    "text",
    [
        "what is the capital of Mongolia",
        "thanks, that looks great",
        "how tall is Mount Everest",
        "who won the world cup in 1998",
        "danke, das sieht gut aus",
        "¿cuál es la capital de Mongolia?",
        "merci beaucoup, c'est parfait",
        "Wie hoch ist der Mount Everest?",
        "quel temps fera-t-il demain ?",
    ],
)
def test_small_talk_and_general_knowledge_are_silent(workspace, text):
    assert workspace.ask(text).hits == ()
    assert workspace.ask(text, min_relevance=0.0).hits
