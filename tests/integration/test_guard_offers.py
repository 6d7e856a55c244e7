"""A prohibition that a person says becomes a guard on one word or one click."""

from contextlib import closing

import pytest

from pipeline.features.lessons.guard_offers import list_guard_offers
from pipeline.kernel.records import CAPTURED_TAG
from tests.fakes.client import CheckedClient
from tests.fakes.in_process import flush_notes, open_web
from web.http.app import create_app

MIGRATE = "From now on never run manage.py migrate against prod"
PROD, STAGING = "python manage.py migrate --database prod", "python manage.py migrate --database staging"
RULES = [
    (MIGRATE, PROD),
    ("Nie prisma migrate reset auf der Produktion ausführen", "npx prisma migrate reset --schema production.prisma"),
    ("Ne lance jamais terraform apply sans relire le plan", "terraform apply"),
    ("Nunca ejecutes docker compose down -v en el servidor", "docker compose down -v"),
    ("never run cargo espflash without --monitor", "cargo espflash flash"),
    ("do not edit package-lock.json without asking me", "sed -i s/a/b/ package-lock.json"),
]
WORDS = ["block this from now on", "ja, blockieren", "Yes, block it.", "sí, bloquéalo", "oui, bloque-le"]


def open_client(container):
    return CheckedClient(create_app(container), container.token)


def hook(client, name, session="s1", **fields):
    answer = client.post("/hooks/claude-code", {"hook_event_name": name, "session_id": session, **fields})
    assert answer.status_code == 200
    given = answer.get_json(silent=True)
    return {} if given is None else given["hookSpecificOutput"]


def say(client, text, session="s1"):
    return hook(client, "UserPromptSubmit", session, prompt=text).get("additionalContext", "")


def decide(client, command):
    return hook(client, "PreToolUse", tool_name="Bash", tool_input={"command": command}).get("permissionDecision")


def capture(client, text, session="s1"):
    """Write a rule as capture stores it."""
    fields = {"kind": "lesson", "source": "ambient", "tags": [CAPTURED_TAG, "rule"], "session_id": session}
    return client.write(text, details={"rule": text}, **fields)


@pytest.mark.parametrize(("rule", "command"), RULES)
def test_a_captured_prohibition_is_offered_once_and_blocks_on_a_word(client, container, rule, command):
    lesson = capture(client, rule)
    assert decide(client, command) is None
    for unrelated in ("hola otra vez", "go on with the task", "el relé de la bomba está en el GPIO 26"):
        assert "Block this from now on?" not in say(client, unrelated)
    assert "Block this from now on?" in say(client, f"what happens if I run {command}?")
    assert "Block this from now on?" not in say(client, f"and then {command}")
    assert "Reverie now stops calls" in say(client, WORDS[0])
    assert client.get(f"/v1/memories/{lesson}").get_json()["details"]["severity"] == "critical"
    assert decide(client, command) == "ask"
    flush_notes(container)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            "from now on never run manage.py loaddata against prod",
            "get the berth fixtures into prod with loaddata",
        ),
        ("never run cargo espflash without --monitor", "schreib die Firmware bitte mit espflash auf das Board"),
        ("Ne lance jamais prisma migrate reset sur la prod.", "¿podemos usar prisma para vaciar la base?"),
        ("Niemals gate/edifact_codes.py von Hand ändern", "ajoute le code 9 dans edifact_codes.py"),
        ("never force-push to main", "now force-push my branch"),
    ],
)
def test_guard_is_offered_once_when_its_rule_is_relevant(home, rule, message):
    with closing(open_web(home)) as first:
        client = open_client(first)
        capture(client, rule)
        assert "Block this" not in say(client, "hola otra vez")
        assert "Block this" in say(client, message)
        flush_notes(first)
    with closing(open_web(home)) as second:
        assert "Block this" not in say(open_client(second), message)


@pytest.mark.parametrize("word", WORDS)
def test_a_rule_is_blocked_on_command_in_every_language(client, word):
    capture(client, MIGRATE)
    assert "Reverie now stops calls" in say(client, word)


def test_a_guard_on_production_lets_staging_pass(client):
    client.write(MIGRATE, kind="lesson", details={"severity": "critical"})
    assert decide(client, PROD) == "ask"
    assert decide(client, STAGING) is None
    assert decide(client, f"{STAGING} && {PROD}") == "ask"


@pytest.mark.parametrize(
    ("rule", "command", "decision"),
    [
        ("never run manage.py loaddata against prod", "uv run python manage.py showmigrations gate", None),
        ("never run manage.py loaddata against prod", "uv run python manage.py loaddata a.json --database prod", "ask"),
        (
            "Ne lance jamais prisma migrate reset sur la prod.",
            "dotenv -e .env.prod -- pnpm prisma migrate reset",
            "ask",
        ),
        ("Ne lance jamais prisma migrate reset sur la prod.", "pnpm prisma generate", None),
        ("Ne lance jamais prisma migrate reset sur la prod.", "ssh app@prod-1 'npx prisma migrate reset'", "ask"),
        ("never run cargo espflash without --monitor", "cargo espflash flash --release --monitor", None),
        ("never run cargo espflash without --monitor", "cargo espflash flash --release", "ask"),
        ("Niemals gate/codes.py von Hand ändern, außer Ina ist dabei", "sed -i s/a/b/ gate/codes.py", "ask"),
        ("Niemals gate/codes.py von Hand ändern, außer Ina ist dabei", "uv run python tools/generate.py", None),
        ("nunca hagas push a main", "git push origin main", "ask"),
        ("nunca hagas push a main", "git push origin arreglo", None),
        ("Never run npm install; use pnpm install.", "pnpm install", None),
    ],
)
def test_critical_lesson_blocks_only_the_commands_it_forbids(client, rule, command, decision):
    client.write(rule, kind="lesson", details={"severity": "critical"})
    assert decide(client, command) == decision


@pytest.mark.parametrize("separator", [". ", "\n"])
def test_the_rule_and_the_block_command_may_be_in_one_prompt(client, separator):
    said = say(
        client, f"{MIGRATE}{separator}Block this from now on." if separator == "\n" else f"Block this: {MIGRATE}"
    )
    assert "Reverie now stops calls" in said
    assert decide(client, PROD) == "ask"


@pytest.mark.parametrize("word", ["block it", "ja, blockieren", "block the IP in nginx", "can you block this?"])
def test_a_block_command_without_a_rule_is_left_to_the_agent(client, container, word):
    client.write("Staging has two replicas")
    assert "Reverie" not in say(client, word)
    assert [
        lesson.id
        for lesson in list_guard_offers(container.workspace("default"), container.workspace("default").onlooker, 9)
    ] == []


def test_a_pasted_block_command_blocks_nothing(client):
    lesson = capture(client, MIGRATE)
    say(client, "Translate this mail:\n\nHi,\nblock this from now on\nBye")
    assert client.get(f"/v1/memories/{lesson}").get_json()["details"]["severity"] == "warning"


@pytest.mark.parametrize(
    "text", ["Never use nested ternaries", "Run make check before every push", "I never liked that logo much"]
)
def test_a_rule_that_forbids_no_call_is_not_offered(client, text):
    capture(client, text)
    assert "Block this" not in say(client, "go on with the task")
