"""What the demonstration shows of the week, section by section, and what each answer must contain."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

HOOK = "reverie-hook claude-code"
SESSION = "mail-invoices"
LESSON_PROMPT = "Add a background job that exports the orders of a day. What do I have to watch out for?"
# What the agents of three sessions reported after they had seen that lesson.
OUTCOMES = {"export-orders": "followed", "retry-mails": "followed", "nightly-report": "ignored"}
REFUSED = 'connection to server at "localhost", port 5432 failed: Connection refused'


@dataclass(frozen=True, slots=True)
class Step:
    """A command, and the texts that its output must contain.

    The output's lines that match `pick` are printed, at most `most` of them; those of a hook are wrapped. With
    `is_question`, the first memory must contain the texts. An `event` is sent to a hook; without texts, its answer must
    be empty.
    """

    command: str
    expect: tuple[str, ...]
    pick: str = ""
    most: int = 3
    is_question: bool = False
    event: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the demonstration."""

    title: str
    steps: tuple[Step, ...]


def list_sections(monday: datetime) -> tuple[Section, ...]:
    """Return the sections about the week that starts on a Monday."""
    return (
        Section("Nightly jobs, run once", (RUN_JOBS,)),
        Section("Facts that change", _list_facts(monday)),
        Section("Questions: the first memory must be the right one", QUESTIONS),
        Section("Past sessions", PAST_SESSIONS),
        Section("Threads (arcs) and the map of entities", THREADS),
        Section("Lessons with their records", (LESSONS,)),
        Section("What Reverie adds to a prompt, before the agent reads it", (PROMPT, SMALL_TALK)),
        Section("Before a dangerous command", (DANGEROUS, HARMLESS)),
    )


RUN_JOBS = Step("reverie jobs run --all", ("arcs", "lessons", "layout"), r"^(arcs|lessons|layout)\b")


def _list_facts(monday: datetime) -> tuple[Step, ...]:
    return (
        Step('reverie facts history "staging database" port', ("5432", "6432")),
        Step(f'reverie facts get "staging database" port --as-of {monday:%Y-%m-%d}', ("5432",)),
    )


def _ask(question: str, *expect: str) -> Step:
    return Step(f'reverie recall "{question}" -k 1', expect, r"^ {5}", 1, is_question=True)


QUESTIONS = (
    # The number of a ticket.
    _ask("What was the cause of LAR-212?", "LAR-212 root cause"),
    # Other words than those of the memory.
    _ask("What happens to old bills if we remove a dish?", "Archive a recipe instead of deleting it"),
    # A fact that changed, because the developer said so in a session.
    _ask("On which port does the staging database listen?", "staging database port: 6432"),
    # A decision that was reversed.
    _ask("Why do background jobs no longer run on Redis?", "Background jobs move from Redis to PostgreSQL"),
    # A detail near the end of a document.
    _ask("From which duration of a restore do customers get a mail?", "longer than 45 minutes"),
)
PAST_SESSIONS = (
    Step('reverie sessions search "queued jobs evicted from Redis"', ("lost-mails",), most=2),
    Step("reverie sessions show move-job-queue", ("SKIP LOCKED",), r"^  (decision|rule|rejected|open) "),
    Step(f"reverie fix '{REFUSED}'", ("docker compose up -d db",), most=2),
    Step("reverie how tests", ("make test",), most=2),
)
THREADS = (
    Step("reverie graph arcs", ("jobs",), r"^(\S| +[^- ])", 4),
    Step("reverie graph show Redis", ("PostgreSQL",)),
)
LESSONS = Step('reverie lessons list --about "a background job"', ("followed 2, ignored 1",), r"^(\S| +[^ r])", 6)
PROMPT = Step(
    HOOK,
    ("Background jobs move from Redis to PostgreSQL", "idempotency key"),
    most=5,
    event={
        "hook_event_name": "UserPromptSubmit",
        "prompt": "Add a background job that mails the invoice after checkout. Which queue do we use for jobs?",
    },
)
SMALL_TALK = Step(HOOK, (), event={"hook_event_name": "UserPromptSubmit", "prompt": "thanks!"})


def _call(command: str, *expect: str) -> Step:
    event = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": command}}
    return Step(HOOK, expect, event=event)


DANGEROUS = _call("alembic -x env=production downgrade -1", "Never run alembic downgrade against production")
HARMLESS = _call("alembic upgrade head")
