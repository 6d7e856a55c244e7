"""What is missing is made in the background, and a text's language chooses the encoder of its sentences."""

import threading

import numpy as np
import pytest

from config.settings import load_settings
from pipeline.index import encoders
from pipeline.index.encoder import ENGLISH, MULTILINGUAL
from pipeline.index.encoders import BackgroundWork, DocumentEncoders, choose_statement_model
from pipeline.kernel.errors import EncoderPending, EncoderUnavailable
from pipeline.kernel.store import languages
from tests.fakes.encoder import HashEncoder
from tests.fakes.in_process import scratch_database

DEADLINE_S = 20


def wait_for(work, name):
    for thread in threading.enumerate():
        if thread.name == f"make-{name}":
            thread.join(DEADLINE_S)


def test_the_caller_does_not_wait_for_the_preparation():
    work, release, made = BackgroundWork(), threading.Event(), []
    with pytest.raises(EncoderPending, match="the thing is being prepared"):
        work.require("thing", lambda: (release.wait(DEADLINE_S), made.append("thing")))
    with pytest.raises(EncoderPending):
        work.require("thing", lambda: made.append("never"))
    assert made == []
    release.set()
    wait_for(work, "thing")
    assert made == ["thing"]


def test_only_one_thing_is_prepared_at_a_time():
    work, release, running = BackgroundWork(), threading.Event(), []
    for name in ("first", "second"):
        with pytest.raises(EncoderPending):
            work.require(name, lambda name=name: (running.append(name), release.wait(DEADLINE_S)))
    while not running:
        threading.Event().wait(0.01)
    threading.Event().wait(0.05)
    assert len(running) == 1
    release.set()
    wait_for(work, "first")
    wait_for(work, "second")
    assert sorted(running) == ["first", "second"]


def test_an_error_reaches_the_next_caller_once_and_the_work_is_tried_again():
    work = BackgroundWork()

    def fail():
        raise OSError("no space left")

    with pytest.raises(EncoderPending):
        work.require("thing", fail)
    wait_for(work, "thing")
    with pytest.raises(EncoderUnavailable, match="the thing could not be prepared: no space left"):
        work.require("thing", fail)
    with pytest.raises(EncoderPending):
        work.require("thing", fail)


def test_a_command_at_a_terminal_waits():
    work, made = BackgroundWork(), []
    work.waits = True
    work.require("thing", lambda: made.append("thing"))
    assert made == ["thing"]


def test_an_encoder_is_compiled_outside_of_the_caller(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    compiled, release = set(), threading.Event()
    monkeypatch.setattr(encoders, "is_encoder_compiled", lambda _settings, model: model in compiled)
    monkeypatch.setattr(
        encoders, "compile_model_apart", lambda _settings, model: (release.wait(DEADLINE_S), compiled.add(model))
    )
    monkeypatch.setattr(encoders, "load_encoder", lambda _settings, _model: HashEncoder())
    held = DocumentEncoders(load_settings({"REVERIE_HOME": str(tmp_path)}))
    with pytest.raises(EncoderPending):
        held.get(ENGLISH)
    release.set()
    wait_for(held.background, f"encoder {ENGLISH}")
    vectors = held.get(ENGLISH).encode_documents(["The port is 8123"])
    assert np.array_equal(vectors, HashEncoder().encode_documents(["The port is 8123"]))


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("we use pnpm here", ENGLISH),
        ("always use pnpm", ENGLISH),
        ("fyi my staging database is on port 6543 now, not 5432", ENGLISH),
        ("wir nehmen hier immer pnpm und nicht npm", MULTILINGUAL),
        ("aquí usamos siempre pnpm y no npm", MULTILINGUAL),
        ("nous utilisons toujours pnpm ici, pas npm", MULTILINGUAL),
    ],
)
def test_english_needs_one_encoder(text, model, tmp_path, monkeypatch):
    monkeypatch.setattr(encoders, "has_multilingual", lambda: True)
    settings = load_settings({"REVERIE_HOME": str(tmp_path)})
    with scratch_database() as database, database.write() as db:
        assert choose_statement_model(settings, db, text) == model
        languages.record_other_languages(db, "5 of 9 memories", embed_again=False)
        assert choose_statement_model(settings, db, text) == MULTILINGUAL


def test_a_few_foreign_words_use_the_other_encoder_if_it_exists(tmp_path, monkeypatch):
    compiled = set()
    monkeypatch.setattr(encoders, "has_multilingual", lambda: True)
    monkeypatch.setattr(encoders, "is_encoder_compiled", lambda _settings, model: model in compiled)
    settings = load_settings({"REVERIE_HOME": str(tmp_path)})
    with scratch_database() as database, database.read() as db:
        assert choose_statement_model(settings, db, "hier nehmen wir pnpm") == ENGLISH
        compiled.add(MULTILINGUAL)
        assert choose_statement_model(settings, db, "hier nehmen wir pnpm") == MULTILINGUAL
        assert choose_statement_model(settings, db, "we use pnpm here") == ENGLISH
