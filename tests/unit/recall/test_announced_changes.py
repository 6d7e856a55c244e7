"""A hit that says that something has changed stands above the hit that it replaces."""

import pytest

from pipeline.kernel.records import Revision
from pipeline.recall.relevance import RELEVANT
from pipeline.text.similarity.statements import says_that_changed
from pipeline.write import revise

CHANGES = [
    (
        "The Heron service deploys to region eu-west-2.",
        "Heron ships every release to ap-south-1, replacing the earlier region.",
        "which region does the Heron service deploy to",
    ),
    (
        "The release freeze of Heron is in effect until the audit.",
        "The release freeze of Heron is lifted.",
        "is the release freeze of Heron in effect",
    ),
    (
        "Die Warteschlange läuft auf Redis 6.",
        "Die Warteschlange wurde auf Valkey umgestellt.",
        "worauf läuft die Warteschlange",
    ),
    (
        "Les factures partent par SMTP.",
        "Les factures partent maintenant par l'API de Postmark.",
        "par quoi partent les factures",
    ),
    (
        "The webinar on hiring takes place on March 20.",
        "I heard that the webinar on hiring was rescheduled to March 27.",
        "when does the webinar on hiring take place",
    ),
    ("Los pagos usan Stripe.", "Los pagos ya no usan Stripe, usan Adyen.", "qué usan los pagos"),
]


@pytest.mark.parametrize(("old", "new", "question"), CHANGES)
def test_the_current_statement_comes_first(workspace, old, new, question):
    outdated = workspace.write(old, occurred_at="2026-01-05T08:00:00.000Z", session_id="a")
    current = workspace.write(new, occurred_at="2026-02-05T08:00:00.000Z", session_id="b")
    workspace.write("The gateway listens on 8443.", occurred_at="2026-03-05T08:00:00.000Z")
    workspace.embed()
    assert workspace.find_ids(question)[:2] == [current, outdated]


@pytest.mark.parametrize(("old", "new", "question"), CHANGES)
def test_a_later_statement_that_changes_nothing_moves_nothing(workspace, old, new, question):
    wanted = workspace.write(old, occurred_at="2026-01-05T08:00:00.000Z", session_id="a")
    workspace.write("The canteen is closed now.", occurred_at="2026-02-05T08:00:00.000Z", session_id="b")
    workspace.embed()
    assert workspace.find_ids(question)[0] == wanted


def test_the_statement_written_last_is_current_among_statements_of_one_time(workspace):
    old, new, question = CHANGES[1]
    outdated, current = (workspace.write(text, occurred_at="2026-01-05T08:00:00.000Z") for text in (old, new))
    workspace.embed()
    assert workspace.find_ids(question)[:2] == [current, outdated]


def test_a_run_of_words_of_the_question_does_not_keep_an_outdated_statement_first(workspace):
    outdated = workspace.write("The nightly Heron backup job of staging runs at 02:00.", session_id="a")
    current = workspace.write("The Heron backup job of staging runs at 04:30 now.", session_id="b")
    workspace.embed()
    assert workspace.find_ids("when does the nightly Heron backup job of staging run")[:2] == [current, outdated]


def test_a_question_about_earlier_times_keeps_its_order(workspace):
    old, new, _ = CHANGES[0]
    outdated = workspace.write(old, occurred_at="2026-01-05T08:00:00.000Z")
    workspace.write(new, occurred_at="2026-02-05T08:00:00.000Z")
    workspace.embed()
    assert workspace.find_ids("which region did the Heron service deploy to before")[0] == outdated


def test_query_for_an_identifier_finds_the_memory_containing_it(workspace):
    holder = workspace.write("OPS-2004: the gateway runs on port 8443", occurred_at="2026-01-05T08:00:00.000Z")
    workspace.write("The gateway now runs on port 9443", occurred_at="2026-02-05T08:00:00.000Z")
    workspace.embed()
    assert workspace.find_ids("OPS-2004")[0] == holder


def test_a_pinned_statement_is_not_replaced(workspace):
    old, new, question = CHANGES[1]
    pinned = workspace.write(old, occurred_at="2026-01-05T08:00:00.000Z")
    revise.edit(workspace.database, pinned, Revision(pinned=True))
    workspace.write(new, occurred_at="2026-02-05T08:00:00.000Z")
    workspace.embed()
    assert workspace.find_ids(question)[0] == pinned


def test_replacing_statement_is_as_relevant_as_the_replaced(workspace):
    old, new, question = CHANGES[0]
    outdated = workspace.write(old, occurred_at="2026-01-05T08:00:00.000Z")
    current = workspace.write(new, occurred_at="2026-02-05T08:00:00.000Z")
    workspace.embed()
    relevances = {hit.memory.id: hit.relevance for hit in workspace.ask(question).hits}
    assert relevances[current] >= relevances[outdated] >= RELEVANT


@pytest.mark.parametrize(
    "text",
    [
        "archive-sync was upgraded to 2.0.3",
        "the job runs at 04:30 now",
        "cert-manager now issues the certificates",
        "Amended rule, superseding keep-latest",
        "the old limit no longer applies",
        "Der Dienst ist abgeschaltet.",
        "La regla anterior no vale.",
        "the deadline was extended to May 20",
        "spend my increased book budget",
        "ne s'utilise plus, remplacé par nginx",
    ],
)
def test_a_change_is_recognized(text):
    assert says_that_changed(text)


@pytest.mark.parametrize(
    "text",
    [
        "Now, let's move on to naming",
        "from now on start names with x_",
        "now that it works, push it",
        "The port is 5432.",
        "Wir nutzen Postgres.",
        "JSON providers can be replaced on the app",
        "the token must be revoked by hand",
        "Der Speicher kann ersetzt werden.",
        "Le modèle peut être remplacé par un autre.",
        "El modelo puede ser reemplazado por otro.",
    ],
)
def test_a_plain_statement_changes_nothing(text):
    assert not says_that_changed(text)
