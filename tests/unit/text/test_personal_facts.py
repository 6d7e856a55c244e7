import pytest

from pipeline.text.names import canonical_name
from pipeline.text.personal_facts import attribute_of_user, find_stated_fact, list_asked_attributes
from tests.fakes.workspace import load_labelled


@pytest.mark.parametrize(
    ("asked", "attribute"),
    [
        ("Where do I live?", "city"),
        ("which city do I live in? it's for the default time zone", "city"),
        ("Wo wohne ich?", "city"),
        ("In welcher Stadt lebe ich?", "city"),
        ("¿Dónde vivo?", "city"),
        ("¿En qué ciudad vivo?", "city"),
        ("Où est-ce que j'habite ?", "city"),
        ("Dans quelle ville est-ce que j’habite ?", "city"),
        ("What is my name?", "name"),
        ("Wie heisse ich?", "name"),
        ("¿Cómo me llamo?", "name"),
        ("Comment je m'appelle ?", "name"),
        ("which editor do I use", "editor"),
        ("what's my editor again?", "editor"),
        ("Welchen Editor benutze ich?", "editor"),
        ("¿Qué editor uso?", "editor"),
        ("Quel éditeur j'utilise ?", "editor"),
        ("¿Qué navegador uso?", "browser"),
        ("where do I work?", "employer"),
        ("Was ist meine Zeitzone?", "time_zone"),
        ("when is my birthday?", "birthday"),
    ],
)
def test_a_question_about_the_user_names_an_attribute(asked, attribute):
    assert attribute in list_asked_attributes(asked)


@pytest.mark.parametrize(
    "said",
    [
        "thanks, I like it",
        "my editor crashed",
        "I think my tests fail, what now?",
        "how do I run my tests?",
        "what is the name of my branch?",
        "danke, das sieht gut aus",
        "where does the config live?",
        "what is the name of the user table?",
        "which editor does the team use?",
        "I live with that",
        "ok, ich mache das",
        "gracias, me gusta",
        "merci, c'est bon pour moi",
        "What is my name? " * 40,
    ],
)
def test_other_messages_ask_for_nothing_about_the_user(said):
    assert list_asked_attributes(said) == frozenset()


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("town", "city"),
        ("place of residence", "city"),
        ("First Name", "name"),
        ("favourite editor", "editor"),
        ("e-mail address", "email"),
        ("Zeitzone", "time_zone"),
        ("correo electrónico", "email"),
        ("dog", "dog"),
    ],
)
def test_an_attribute_of_the_user_has_one_name(name, attribute):
    assert attribute_of_user(canonical_name(name)) == attribute


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("hometown", "city"),
        ("Heimatstadt", "city"),
        ("nickname", "name"),
        ("full name", "first name"),
        ("workplace", "employer"),
        ("language", "preferred language"),
        ("idioma", "idioma de respuesta"),
        ("keyboard", "keyboard layout"),
        ("clavier", "disposition de clavier"),
        ("distro", "operating system"),
    ],
)
def test_related_attributes_of_the_user_are_different_facts(name, other):
    assert attribute_of_user(canonical_name(name)) != attribute_of_user(canonical_name(other))


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("call me Jule please, only my bank writes Juliane", ("user", "name", "Jule")),
        ("just call me Jo.", ("user", "name", "Jo")),
        ("ich heiße Anna", ("user", "name", "Anna")),
        ("please answer in German from now on", ("user", "answer_language", "German")),
        ("Antworte mir bitte immer auf Deutsch.", ("user", "answer_language", "Deutsch")),
        ("I'm a backend developer", ("user", "role", "backend developer")),
        ("my time zone is CET", ("user", "time_zone", "CET")),
        ("Ich arbeite bei Feldkorb", ("user", "employer", "Feldkorb")),
        ("mi correo es ana@example.org", ("user", "email", "ana@example.org")),
        ("I edit everything in Kakoune, by the way", ("user", "editor", "Kakoune")),
        ("I use Ladybird as my browser", ("user", "browser", "Ladybird")),
        ("we moved from npm to pnpm", ("project", "package_manager", "pnpm")),
    ],
)
def test_a_sentence_states_a_fact(said, fact):
    stated = find_stated_fact(said)
    assert (stated.subject, stated.attribute, stated.value) == fact


@pytest.mark.parametrize("said", ["I prefer tabs", "I use Docker", "I work on the parser", "I run the tests twice"])
def test_other_sentences_state_none(said):
    assert find_stated_fact(said) is None


def test_no_message_to_a_project_asks_for_a_fact_about_the_user():
    texts = [message["text"] for message in load_labelled("messages.json")]
    assert [text for text in texts if list_asked_attributes(text)] == []


@pytest.mark.parametrize(
    ("said", "employer"),
    [
        ("i work at night mostly", None),
        ("I work at midnight", None),
        ("i work for free", None),
        ("i work at weekends too", None),
        ("ich arbeite bei nacht", None),
        ("i work at siemens mostly", "siemens"),
        ("I work at Home Depot", "Home Depot"),
    ],
)
def test_a_time_or_manner_is_no_employer(said, employer):
    stated = find_stated_fact(said)
    assert (stated and (stated.attribute, stated.value)) == (employer and ("employer", employer))
