"""Which short messages continue the message before, and which say too little to search."""

import pytest

from pipeline.text.messages import KEY_WORDS, is_follow_up, is_small_talk, key_words, list_own_words, says_little
from pipeline.text.sentences import count_rule_words


@pytest.mark.parametrize(
    "message",
    [
        "and on production?",
        "why?",
        "how come",
        "who did that",
        "since when",
        "same for the billing service",
        "billing next please",
        "the infra change as well",
        "what about the other one then",
        "und lokal?",
        "warum eigentlich",
        "seit wann denn das",
        "¿y en producción?",
        "y el de pruebas",
        "qué más lleva ella",
        "et sans clé",
        "pareil sur le site ?",
        "côté horaires c'est la même base ?",
        "who owns it?",
        "how long does that take?",
        "for staging?",
        "longer in the app?",
        "what about the port?",
        "und bei der billing api?",
        "wem gehört der?",
        "wie lange dauert das?",
        "was ist mit staging?",
        "wo liegt das denn?",
    ],
)
def test_a_short_question_continues_the_message_before(message):
    assert is_follow_up(message)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "ok",
        "thanks!",
        "perfect thanks",
        "you're a star",
        "yep go ahead",
        "again",
        "shorter",
        "ten",
        "the flow",
        "no leave it",
        "fine, commit that",
        "how are you?",
        "are you sure?",
        "bist du sicher?",
        "¿estás seguro?",
        "and with -v?",
        "and with --output yaml?",
        "y con -Os cuánto ocupa",
        "ja mach mal",
        "danke dir",
        "genial, gracias",
        "nickel",
        "firm-where? haha sorry",
        "how much farther is Orlando from my location",
        "btw good recipe for rhubarb cake?",
        "who is the CEO?",
        "how tall is Mount Everest?",
        "what's the capital of France?",
        "who invented the telephone?",
        "can whales sleep?",
        "does python have a switch statement?",
        "are there penguins in Africa?",
        "what time is it?",
        "wie hoch ist der Mount Everest?",
        "wer ist der Chef von Nordkai?",
        "wie heißt die Hauptstadt von Peru?",
        "wann wurde Rom gegründet?",
        "wie spät ist es?",
        "gibt es Pinguine in Afrika?",
        "qui est le PDG ?",
        "¿quién es el presidente?",
        "Please move the retry logic of the payment client into its own module and cover it with tests, as discussed",
    ],
)
def test_consent_thanks_and_complete_messages_continue_nothing(message):
    assert not is_follow_up(message)


@pytest.mark.parametrize(
    "message",
    [
        "continue",
        "Continue.",
        "ok, continue please",
        "go on",
        "keep going",
        "fix the tests",
        "fix the failing tests",
        "run the tests again",
        "carry on with the rest",
        "mach weiter",
        "weiter",
        "behebe die Fehler",
        "sigue",
        "arregla las pruebas",
        "continue le travail",
        "corrige les tests",
    ],
)
def test_an_order_without_an_object_says_too_little_to_search(message):
    assert says_little(message)


@pytest.mark.parametrize(
    "message",
    [
        "",
        "thanks, that looks great",
        "yes",
        "good morning",
        "tell me a joke",
        "fix the tests of the billing service",
        "continue with the Argo migration",
        "fix test_pool.py",
        "which port does billing use?",
        "repariere den Import der Rechnungen",
    ],
)
def test_small_talk_and_orders_with_an_object_are_searched(message):
    assert not says_little(message)


def test_the_words_of_the_message_before_follow_those_of_the_message():
    first = key_words("Which port does staging's Postgres use?")
    assert first == "port staging postgres"
    assert key_words("and on production?", first) == "production port staging postgres"
    assert len(key_words(" ".join(f"word{number}" for number in range(100))).split()) == KEY_WORDS
    assert list_own_words("why?") == []


@pytest.mark.parametrize(
    "message",
    [
        "thanks, that looks great",
        "great, thank you!",
        "lgtm, merge it",
        "danke, passt so",
        "gracias, queda genial",
        "merci, c'est parfait",
        "спасибо!",
    ],
)
def test_thanks_and_praise_are_small_talk(message):
    assert is_small_talk(message)


@pytest.mark.parametrize(
    "message",
    ["", "thanks, now move staging to port 6543", "who thanked the vendor?", "nice value of the worker", "ok, go on"],
)
def test_a_message_about_something_is_no_small_talk(message):
    assert not is_small_talk(message)


# A search from each character would take hours.
@pytest.mark.parametrize("text", ["=", "a", ".", "`=", "-", "a="])
def test_a_long_run_of_one_character_is_read_once(text):
    long = text * (300_000 // len(text))
    assert count_rule_words(long) >= 0
    assert len(list_own_words(long)) >= 0
