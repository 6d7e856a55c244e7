"""A memory is found by every text that an agent is shown of it, by its tags and by its metadata."""

import pytest

from tests.fakes.command_line import run, serve_app
from tests.fakes.dashboard import sign_in
from tests.fakes.in_process import run_job

UNRELATED = (
    "The old office was too small and the rent was high",
    "Das alte Büro war zu klein und die Miete zu hoch",
    "La oficina vieja era pequeña y el alquiler alto",
    "L'ancien bureau était petit et le loyer élevé",
)
# On a busy machine too, every channel answers; and every result is shown, whatever its relevance.
COMPLETE = {"min_relevance": 0, "budget_ms": 10_000}


def decide(reason, alternative, content="We moved the jobs"):
    return {"content": content, "kind": "decision", "details": {"reason": reason, "alternatives": [alternative]}}


ENGLISH = decide("Celery leaked memory under gevent", "RabbitMQ")
GERMAN = decide("Gunicorn verlor Speicher unter Last", "Dramatiq", "Wir haben den Server gewechselt")
SPANISH = decide("Jenkins perdía la conexión", "TeamCity", "Movimos los trabajos de compilación")
FRENCH = decide("Vagrant plantait sur les portables", "Podman", "Nous avons changé d'environnement")
LESSON = {
    "content": "The pipeline was red for an hour",
    "kind": "lesson",
    "details": {"rule": "Run make check first", "applies_when": "pushing a branch"},
}
QA = {
    "content": "Asked in the stand-up",
    "kind": "qa",
    "details": {"question": "Who owns billing?", "answer": "The ledger team"},
}
TAGGED = {"content": "Orders of this customer are packed by hand", "tags": ["shop-4711"]}
MARKED = {"content": "The import is slow", "metadata": {"customer": "Quagga Ltd", "ticket": "OPS-991"}}

CASES = [
    (ENGLISH, "did we consider RabbitMQ?"),
    (ENGLISH, "why did we leave Celery?"),
    (ENGLISH, "what leaked under gevent?"),
    (GERMAN, "haben wir Dramatiq erwogen?"),
    (GERMAN, "warum haben wir Gunicorn verlassen?"),
    (SPANISH, "¿consideramos TeamCity?"),
    (SPANISH, "¿por qué dejamos Jenkins?"),
    (FRENCH, "avons-nous envisagé Podman ?"),
    (FRENCH, "pourquoi avons-nous quitté Vagrant ?"),
    (LESSON, "what comes before pushing a branch?"),
    (LESSON, "make check"),
    (QA, "who is responsible for billing?"),
    (QA, "what does the ledger team own?"),
    (TAGGED, "shop-4711"),
    (TAGGED, "what do we know about shop-4711?"),
    (MARKED, "which import is of Quagga?"),
    (MARKED, "OPS-991"),
]


@pytest.fixture
def unrelated(client):
    return [client.write(text) for text in UNRELATED]


@pytest.mark.usefixtures("unrelated")
@pytest.mark.parametrize("built", [False, True], ids=["fresh", "in a segment"])
def test_every_field_finds_its_memory_before_an_unrelated_one(client, digested, worker, built):
    written = {str(case[0]): client.write(**case[0]) for case in CASES}
    digested()
    if built:
        run_job(worker, "default", "segment")
    found = {question: client.find_ids(question, **COMPLETE)[:1] for _, question in CASES}
    assert found == {question: [written[str(fields)]] for fields, question in CASES}


@pytest.mark.usefixtures("unrelated")
def test_a_field_that_is_changed_is_found_by_its_new_words_only(client, digested):
    memory_id = client.write(**ENGLISH)
    digested()
    changed = {"details": {"reason": "Dramatiq starts faster", "alternatives": ["Kafka"]}, "tags": ["queue-7"]}
    assert client.patch(f"/v1/memories/{memory_id}", changed).status_code == 200
    digested()
    for question in ("Dramatiq", "Kafka", "queue-7"):
        assert client.find_ids(question, **COMPLETE)[:1] == [memory_id]
    assert client.find_ids("Celery", min_relevance=0.5) == []


def test_searches_and_lists_can_be_limited_to_tags(client, container, monkeypatch):
    both = client.write("The queue is SQLite", tags=["storage", "shop-4711"])
    client.write("The queue is empty at night", tags=["storage"])
    client.write("The queue has no tag")
    assert client.find_ids("queue", tags=["shop-4711"], **COMPLETE) == [both]
    assert client.find_ids("queue", tags=["storage", "shop-4711"], **COMPLETE) == [both]
    assert client.find_ids("queue", tags=["unknown"], **COMPLETE) == []
    assert [item["id"] for item in client.get("/v1/memories?tag=shop-4711").get_json()["items"]] == [both]
    assert [item["id"] for item in client.get("/v1/memories?tag=Shop%204711").get_json()["items"]] == [both]
    page = sign_in(client).page("/w/default/timeline?tag=shop-4711")
    assert "The queue is SQLite" in page
    assert "empty at night" not in page
    with serve_app(container) as port:
        monkeypatch.setenv("REVERIE_PORT", str(port))
        monkeypatch.setenv("REVERIE_WORKSPACE", "default")
        listed, found = run("list", "--tag", "shop-4711").stdout, run("recall", "queue", "--tag", "shop-4711").stdout
        assert "No memories match" in run("list", "--tag", "unknown").stderr
    for answer in (listed, found):
        assert "The queue is SQLite" in answer
        assert "empty at night" not in answer
