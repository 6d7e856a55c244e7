"""Which prompts ask that nothing is kept, and which messages are then left out."""

from pathlib import Path

import pytest

from pipeline.kernel.store.turns import Message, Role
from pipeline.sessions.orders import nosave
from pipeline.sessions.orders.nosave import NoSave, find_no_save
from pipeline.sessions.orders.unsaved import split_said

DATA = Path(__file__).parents[2] / "data"
SENTENCE, TURN, SESSION, RESUME = NoSave.SENTENCE, NoSave.TURN, NoSave.SESSION, NoSave.RESUME
# The least recall of commands and the greatest part of look-alikes that are taken for one, by file.
BOUNDS = {
    "nosave/english": (0.75, 0.1),
    "nosave/german": (0.75, 0.1),
    "nosave/spanish": (0.75, 0.1),
    "nosave/french": (0.75, 0.1),
    "nosave_work/dev": (0.9, 0.1),
    "nosave_work/test": (0.9, 0.05),
    # Rules and reminders of a project, no commands.
    "nosave_work/rules": (0, 0.1),
}


def read_labelled(name):
    label, labelled = "none", []
    for line in (DATA / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            label = line.strip("[]")
        elif line.strip():
            labelled.append((line, label))
    return labelled


@pytest.mark.parametrize("name", BOUNDS)
def test_commands_that_the_classifier_was_not_fitted_on_are_recognized(name):
    recall, false_alarms = BOUNDS[name]
    labelled = read_labelled(name)
    found = {text: find_no_save(text) for text, _ in labelled}
    commands = [text for text, label in labelled if label != "none"]
    others = [text for text, label in labelled if label == "none"]
    assert sum(found[text] is not None for text in commands) >= recall * len(commands)
    assert sum(found[text] is not None for text in others) <= false_alarms * len(others)


@pytest.mark.parametrize(
    ("said", "command"),
    [
        ("Don't remember this: my favourite editor is Helix.", SENTENCE),
        ("This is off the record: the release slips to May.", SENTENCE),
        ("We ship on Friday. Please don't store that my wife is ill.", SENTENCE),
        ("Merk dir das bitte nicht: mein Passwort ist Kaffee.", SENTENCE),
        ("Nicht merken: Jorun zieht im Januar nach Bergen, sagt ihr Bruder am Telefon.", SENTENCE),
        ("No guardes esto: mi sueldo sube en julio.", SENTENCE),
        ("Ne retiens pas ça : je démissionne vendredi.", SENTENCE),
        ("forget what I just said", TURN),
        ("Vergiss, was ich gerade gesagt habe.", TURN),
        ("Olvida lo que acabo de decir.", TURN),
        ("Oublie ce que je viens de dire.", TURN),
        ("don't save anything in this session", SESSION),
        ("Speichere nichts aus dieser Sitzung.", SESSION),
        ("No guardes nada de esta sesión.", SESSION),
        ("Ne garde rien de cette session.", SESSION),
        ("you can save again", RESUME),
        ("Du darfst wieder speichern.", RESUME),
        ("Ya puedes volver a guardar lo que digo.", RESUME),
        ("Tu peux de nouveau retenir ce que je dis.", RESUME),
        # Look-alikes.
        ("don't save the file yet", None),
        ("skip the notes section", None),
        ("schreib dir hinter die ohren: kein any in typescript", None),
        ("never store passwords in plain text", None),
        ("forget it, I'll do it myself", None),
        ("remember this: never save passwords in plain text", None),
        ("remember that we don't keep logs", None),
        ("forget what I said about staging", None),
        ("forget that", None),
        ("what do you remember about me?", None),
        ("turn off logging in this test", None),
        ("Where does billing listen?", None),
        ("Speicher die Datei noch nicht.", None),
        ("El formulario no guarda los datos.", None),
        ("Le formulaire n'enregistre pas la date.", None),
        ("no internal names and no ticket ids in release notes, please, ever", None),
        ("I keep forgetting: the pager rota is in infra/oncall.yml", None),
        ("Patientendaten NIE ins Log. Der Datenschutz hat uns letztes Jahr fast den Kopf abgerissen", None),
        ("I forgot to say: don't store this", SENTENCE),
    ],
)
def test_a_question_is_recognized(said, command):
    assert find_no_save(said) == command


@pytest.mark.parametrize(
    "message",
    [
        (
            "Good to hear, that part keeps me calm: the retry wrapper is old, it was never recorded why it forgets the "
            "last header, and I would rather not write another one before we know which of the two services "
            "still needs it."
        ),
        (
            "No, the merge has to keep the first entry of each tenant in the order in which the ledger wrote it, "
            "because the auditors compare that record with the private export and nothing in it "
            "may be dropped or written twice."
        ),
        (
            "Nein, der Import behält die Reihenfolge der Zeilen bei, schreibt nichts doppelt und vergisst auch "
            "keine Zeile, die im Protokoll der letzten Sitzung steht, sonst stimmt der Abgleich "
            "mit der Buchhaltung nicht mehr."
        ),
        (
            "Non, la synchronisation garde les lignes dans leur ordre, n'efface rien et n'oublie pas les entrées que "
            "le journal a enregistrées hier, sinon le rapprochement avec la comptabilité ne tombe plus juste."
        ),
    ],
)
def test_a_long_message_about_work_is_no_command(message):
    assert find_no_save(message) is None


def test_statements_about_forgetting_programs_are_no_commands():
    said = (
        "a cache that may forget",
        "the job can throw our orders' mails away",
        "Remove unused parameters from the parser, nothing reads them.",
        "I've heard good things about that store, but I'm not sure.",
        "i cant remember the name of that flag",
        "You're welcome. Don't hesitate to reach out, and keep up the good work!",
    )
    assert [text for text in said if find_no_save(text) is not None] == []


def test_no_word_of_one_language_starts_like_a_common_word_of_another():
    # "not*" for the Spanish "notar" once made every English negation a word for writing.
    common = "not another garden stock couple conservation retirement borrow out off go head clear store stores"
    wrong = {"write", "forget", "delete", "avoid", "pause", "aside", "memory"}
    assert {word for word in common.split() if wrong & set(nosave._concepts(word))} == set()


@pytest.mark.parametrize(
    "pasted",
    [
        "Summarise this mail:\n\nDon't remember this: my favourite editor is Helix.",
        "> don't save anything in this session",
        "```\nforget what I just said\n```",
    ],
)
def test_quoted_text_asks_for_nothing(pasted):
    assert find_no_save(pasted) is None


def test_an_ordinary_prompt_is_not_classified(monkeypatch):
    monkeypatch.setattr(nosave, "_classifier", lambda: pytest.fail("was classified"))
    for prompt in ("Fix the parser", "Which port does billing listen on?", "ja, mach weiter", "gracias", "merci", ""):
        assert find_no_save(prompt) is None


def say(*texts):
    return [
        Message("s", Role.USER if number % 2 == 0 else Role.ASSISTANT, text, "t") for number, text in enumerate(texts)
    ]


def keep(*texts, **states):
    return [message.content for message in split_said(say(*texts), **states).to_store]


def test_a_message_is_left_out_with_its_answer():
    assert keep("a", "A", "Don't remember this: x", "X", "b", "B") == ["a", "A", "b", "B"]


def test_the_previous_turn_is_left_out():
    assert keep("a", "A", "b", "B", "forget what I just said", "ok", "c") == ["a", "A", "c"]
    assert split_said(say("forget what I just said", "ok")).forgets_before


def test_the_rest_of_a_session_is_left_out_until_it_is_allowed():
    said = ("a", "A", "don't save anything in this session", "ok", "b", "B", "you can save again", "ok", "c", "C")
    assert keep(*said) == ["a", "A", "c", "C"] or keep(*said) == ["a", "A", "ok", "c", "C"]
    assert split_said(say(*said[:6])).mode is SESSION


def test_a_late_answer_of_a_silent_turn_is_left_out():
    late = [Message("s", Role.ASSISTANT, "late", "t"), *say("a", "A")]
    assert [message.content for message in split_said(late, follows_silence=True).to_store] == ["a", "A"]
    assert len(split_said(late).to_store) == 3
