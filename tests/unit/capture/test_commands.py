import pytest

from pipeline.capture.commands import CommandType, read_commands

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
def test_what_a_line_asks_of_the_memory(said, meant):
    found = [(one.type, one.text) for one in read_commands(said)]
    assert found == ([] if meant is None else [meant])


def test_a_command_may_stand_on_any_line():
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
