"""Questions whose answer is two or three notes away are answered by the graph; questions about one note keep theirs."""

import json
from pathlib import Path

import numpy as np
import pytest

from pipeline.index.encoder import OnnxEncoder
from pipeline.kernel.records import Draft, Kind, Source, Stage
from pipeline.kernel.records.recall import Channel, ChannelState, Query
from pipeline.recall.graph import CONNECTED
from pipeline.recall.intent import QuestionIntents
from pipeline.recall.search import search_uncached
from tests.fakes.in_process import HeldEncoder, accept_batch, digest_stage, fast_settings, open_web, open_worker

STORES = json.loads((Path(__file__).parents[1] / "data" / "two_hop.json").read_text(encoding="utf-8"))["stores"]
FIRST_PASS = (Channel.LEXICAL, Channel.DENSE)
K = 10


@pytest.fixture(scope="module")
def encoder(compiled_model):
    return OnnxEncoder.load(compiled_model, threads=1)


@pytest.fixture(scope="module")
def ask(encoder, tmp_path_factory):
    """Return a function that answers a question to a part with the state of the graph and the ids of the notes."""
    settings = fast_settings(tmp_path_factory.mktemp("two_hop"))
    container, worker = open_web(settings, encoder), open_worker(settings)
    worker.encoders = HeldEncoder(encoder)
    container.contexts.find_intents(container.workspace("dev")).load(encoder)
    ids = {}
    for store in STORES:
        turns = [(session["session"], turn) for session in store["sessions"] for turn in session["turns"]]
        drafts = [
            Draft(
                f"{turn['speaker']}: {turn['text']}",
                kind=Kind.EPISODE,
                source=Source.IMPORT,
                session_id=session,
                occurred_at=turn["at"],
            )
            for session, turn in turns
        ]
        database = container.databases.get(store["part"], create=True)
        receipts = accept_batch(database, drafts)
        ids |= {receipt.id: turn["id"] for receipt, (_, turn) in zip(receipts, turns, strict=True)}
        errors: list[str] = []
        digest_stage(worker, Stage.EMBED, worker.stages(store["part"])[Stage.EMBED], errors.append, store["part"])
        assert errors == []

    def run(part, question, channels=tuple(Channel)):
        context = container.contexts.get(container.workspace(part))
        answer = search_uncached(context, Query(question, K, budget_ms=60_000, channels=channels))
        return answer.channels[Channel.GRAPH].state, [ids[hit.memory.id] for hit in answer.hits]

    yield run
    container.close()
    worker.close()


def questions(part, *types):
    store = next(store for store in STORES if store["part"] == part)
    return [asked for asked in store["questions"] if asked["type"] in types]


TWO_HOPS = ("affected", "owner", "depends", "data", "library", "cause", "decision")


@pytest.mark.parametrize("part", ["dev", "test"])
def test_questions_that_need_several_notes_find_them(ask, part):
    def recall(channels):
        shares = [
            len(set(asked["evidence"]) & set(ask(part, asked["q"], channels)[1])) / len(asked["evidence"])
            for asked in questions(part, *TWO_HOPS)
        ]
        return np.mean(shares)

    assert recall(tuple(Channel)) >= 0.85
    assert recall(FIRST_PASS) <= 0.6


@pytest.mark.parametrize("part", ["dev", "test"])
def test_questions_answered_by_a_single_note_keep_it_first(ask, part):
    asked = questions(part, "single", "direct")
    firsts = {channels: sum(ask(part, one["q"], channels)[1][0] in one["evidence"] for one in asked) / len(asked)
              for channels in (FIRST_PASS, tuple(Channel))}  # fmt: skip
    assert firsts[tuple(Channel)] >= firsts[FIRST_PASS] - 0.03
    states = [ask(part, one["q"])[0] for one in questions(part, "single")]
    assert states.count(ChannelState.OFF) >= len(states) / 2


def test_question_about_a_host_finds_the_service_on_its_database(ask):
    state, found = ask("dev", "What is affected when pine-04 is rebooted?")
    assert state is ChannelState.OK
    assert {"h009", "h033"} <= set(found)


CONNECTED_QUESTIONS = (
    "Which products can customers not buy while the stock service is offline?",
    "Who gets paged when the disk of the build server is full?",
    "What else would break if we remove the old queue?",
    "Which team should hear about a new schema of the events table?",
    "Why did the newsletter go out twice after the upgrade of the scheduler?",
    "In which country was the inventor of the engine born?",
    "Wer muss informiert werden, wenn wir den Router austauschen?",
    "Welche Programme greifen auf denselben Speicher zu wie der Shop?",
    "¿Qué equipos se ven afectados si se borra la cola antigua?",
    "¿Por qué dejó de llegar el boletín tras la actualización?",
    "Quelles équipes sont concernées si l'on supprime l'ancienne file ?",
    "Pourquoi la lettre est-elle partie deux fois après la mise à jour ?",
)
PLAIN_QUESTIONS = (
    "How many retries does the mailer make?",
    "Which shell do I use?",
    "What is the name of the production cluster?",
    "When did we switch to weekly releases?",
    "Please write a changelog entry for this fix.",
    "The login page is slow today.",
    "Wie viele Versuche macht der Mailer?",
    "Schreib einen Eintrag ins Changelog.",
    "¿Cuántos reintentos hace el servicio de correo?",
    "¿Cómo se llama el clúster de producción?",
    "Combien de tentatives fait le service de courrier ?",
    "Ajoute une ligne au journal des modifications.",
)


def test_connected_and_plain_questions_are_classified(encoder, tmp_path):
    intents = QuestionIntents(tmp_path)
    intents.load(encoder)

    def is_connected(question):
        return intents.weigh(encoder, question, encoder.encode_query(question)) >= CONNECTED

    right = [is_connected(question) for question in CONNECTED_QUESTIONS]
    right += [not is_connected(question) for question in PLAIN_QUESTIONS]
    assert sum(right) >= 20
