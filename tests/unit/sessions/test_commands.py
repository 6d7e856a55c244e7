from pathlib import Path

import pytest

from pipeline.sessions.orders.commands import CommandType, read_commands
from pipeline.sessions.orders.nosave import NoSave, find_no_save

REMEMBER, FORGET = CommandType.REMEMBER, CommandType.FORGET


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("remember this: we use pnpm", (REMEMBER, "we use pnpm")),
        ("Please remember: x is y", (REMEMBER, "x is y")),
        ("remember that the port is 5", (REMEMBER, "the port is 5")),
        ("Merk dir: wir nutzen pnpm", (REMEMBER, "wir nutzen pnpm")),
        ("recuerda esto: usamos pnpm", (REMEMBER, "usamos pnpm")),
        ("forget that", (FORGET, "")),
        ("Forget that, please.", None),
        ("forget that please.", (FORGET, "")),
        ("forget what I said about staging", (FORGET, "staging")),
        ("forget that we use pnpm.", (FORGET, "we use pnpm")),
        ("forget: the pnpm rule", (FORGET, "the pnpm rule")),
        ("vergiss das", (FORGET, "")),
        ("olvida eso", (FORGET, "")),
        ("oublie ça", (FORGET, "")),
        # Manners of speaking, questions, and what is told of remembering.
        ("forget it", None),
        ("do you remember this: x?", None),
        ("remember this: is it x?", None),
        ("remember to run the tests", None),
        ("I always forget that", None),
        ("note: this is odd", None),
        ("remember this:", None),
    ],
)
def test_memory_command_in_a_line_is_parsed(said, meant):
    found = [(one.type, one.text) for one in read_commands(said)]
    assert found == ([] if meant is None else [meant])


def test_memory_command_is_found_on_any_line():
    found = read_commands("Fix the parser.\nremember this: it is recursive\nforget that")
    assert [(one.type, one.text) for one in found] == [(REMEMBER, "it is recursive"), (FORGET, "")]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("block this from now on", ""),
        ("Yes please, block that from now on.", ""),
        ("ja, blockieren", ""),
        ("Blockiere das ab jetzt", ""),
        ("sí, bloquéalo", ""),
        ("bloquear esto a partir de ahora", ""),
        ("oui, bloque-le", ""),
        ("Bloque ça désormais !", ""),
        ("block this from now on: never run make wipe", "never run make wipe"),
        ("block the IP in nginx", None),
        ("blockiere den Nutzer", None),
        ("bloque le port 80", None),
        ("can you block this?", None),
        ("the firewall should block it", None),
    ],
)
def test_a_command_to_block_is_recognized(said, meant):
    found = [(one.type, one.text) for one in read_commands(said)]
    assert found == ([] if meant is None else [(CommandType.BLOCK, meant)])


ORDERS = Path(__file__).parents[2] / "data" / "orders"
KINDS = {
    NoSave.SENTENCE: "message",
    NoSave.TURN: "purge",
    NoSave.DOUBTFUL_TURN: "archive",
    NoSave.SESSION: "session",
    NoSave.RESUME: "resume",
}
OF_COMMANDS = {REMEMBER: "remember", FORGET: "archive", CommandType.BLOCK: "block"}


def read_labelled(name):
    label = ""
    for line in (ORDERS / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("[") and line.endswith("]"):
            label = line.strip("[]")
        else:
            yield line, label


def kind_of(said):
    if (refused := find_no_save(said)) is not None:
        return KINDS[refused]
    commands = read_commands(said)
    return OF_COMMANDS[commands[0].type] if commands else "none"


@pytest.mark.parametrize("name", ["dev", "test"])
def test_commands_in_seven_languages_differ_from_similar_sentences(name):
    labelled = [(label, kind_of(said), said) for said, label in read_labelled(name)]
    for kind, least in (("remember", 0.95), ("message", 0.85), ("session", 0.95), ("archive", 0.95), ("purge", 0.95)):
        meant = [found for label, found, _ in labelled if label == kind]
        assert meant.count(kind) >= least * len(meant), kind
    assert [said for label, found, said in labelled if found == "purge" and label != "purge"] == []
    assert [said for label, found, said in labelled if found == "remember" and label != "remember"] == []
    others = [found for label, found, _ in labelled if label == "none"]
    assert others.count("none") >= 0.95 * len(others)


@pytest.mark.parametrize(
    ("said", "texts"),
    [
        ("Would you keep in mind that we never squash?", ["we never squash"]),
        ("remember this: staging is reset on Sundays, ok?", ["staging is reset on Sundays"]),
        ("Can you remember that staging is reset on Sundays? Then fix the test.", ["staging is reset on Sundays"]),
        ("Rename the helper, and remember that SQL columns are in snake case.", ["SQL columns are in snake case."]),
        ("We never deploy on Fridays, please remember that.", ["We never deploy on Fridays"]),
        ("The cron is off in June. Could you keep that in mind?", ["The cron is off in June."]),
        ("Kannst du dir merken, dass die Tests nachts laufen?", ["die Tests nachts laufen"]),
        ("remember to always run the formatter", ["always run the formatter"]),
        ("Please note that the README says so in the changelog", []),
        ("Can you remember that bug we fixed in May?", []),
        ("He said that I should remember that the key is rotated.", []),
    ],
)
def test_remember_command_within_a_line_is_parsed(said, texts):
    found = read_commands(said)
    assert [command.text for command in found if command.type is REMEMBER] == texts
    assert not any(command.is_doubtful for command in found)


@pytest.mark.parametrize("said", ["Translate: please remember that the office is closed", "> please note that x is y"])
def test_an_order_in_the_text_of_another_is_not_carried_out(said):
    assert all(command.is_doubtful for command in read_commands(said))
