"""`reverie store encrypt` and `decrypt`: what they say, what they end with, and that they wait for no stack."""

import json

import pytest

from config.process import Role
from pipeline.features.encryption.usecases import NOT_ENCRYPTED
from tests.fakes.command_line import run, run_json
from tests.fakes.homes import Home


@pytest.fixture
def filled(home):
    """A home with a memory in it, in force for this process."""
    made = Home(home.paths.root)
    made.say("The okapi hides")
    made.close()
    return home.paths


def test_there_and_back(filled, key_file):
    said = run("store", "encrypt", "--key-file", str(key_file)).output
    assert f"created the key {key_file}. Keep a copy" in said
    assert "encrypted 1 file of default" in said
    assert f"not encrypted: {NOT_ENCRYPTED}" in said
    again = run_json("store", "encrypt")
    assert again["converted"] == {"default": 0}
    assert (again["encrypted"], again["key_file"], again["made_key"]) == (True, str(key_file), False)
    assert (again["already"], again["left"]) == (1, [])
    assert key_file.read_text().strip() not in said
    assert "decrypted 1 file of default" in run("store", "decrypt").stdout
    assert run_json("store", "decrypt") == {"encrypted": False, "converted": {}, "already": 0, "left": []}
    assert key_file.is_file()


def test_a_place_that_is_none_is_wrong_usage_and_changes_nothing(filled):
    assert "--key-file" in run("store", "encrypt", code=2).output
    inside = filled.root / "reverie.key"
    assert (
        "in the data directory that the key encrypts"
        in run("store", "encrypt", "--key-file", str(inside), code=2).output
    )
    assert not inside.exists()
    assert not filled.store_key.exists()


def test_a_stack_that_runs_is_not_encrypted_under(filled, key_file):
    role = Role(filled.root, "web")
    role.take()
    try:
        for command in (("store", "encrypt", "--key-file", str(key_file)), ("store", "decrypt")):
            run(*command, code=1)
    finally:
        role.release()
    assert not key_file.exists()
    assert not filled.store_key.exists()


def test_a_damaged_file_is_named_and_the_command_fails(filled, key_file):
    file = filled.workspace("other").events
    file.parent.mkdir(parents=True)
    sound = filled.workspace("default").events.read_bytes()
    file.write_bytes(sound[:4096] + bytes(len(sound) - 4096))
    done = run("store", "encrypt", "--key-file", str(key_file), code=1)
    assert f"not encrypted: {file}" in done.stderr
    assert "all stores" not in done.stdout
    told = json.loads(run("store", "encrypt", "--json", code=1).stdout)
    assert [str(file) in problem for problem in told["left"]] == [True]
    doctor = run("doctor", code=1).stdout
    assert f"warn  encryption: still plain: {file}" in doctor


def test_lost_key_makes_the_data_directory_unusable(filled, key_file):
    run("store", "encrypt", "--key-file", str(key_file))
    key_file.unlink()
    for command in (
        ("store", "encrypt"),
        ("store", "decrypt"),
        ("store", "snapshot", "take", "-w", "default"),
    ):
        assert str(key_file) in run(*command, code=4).stderr
