"""What the user said and capture has not read yet is reported, with the encoder that it waits for."""

import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from config.settings import load_settings
from pipeline.features.indexing import usecases as encoder
from pipeline.features.indexing.usecases import describe_waiting_turns, list_session_notes
from pipeline.index.encoder import ENGLISH, MULTILINGUAL
from pipeline.kernel.records import Stage
from pipeline.kernel.records.hooks import AgentSession
from pipeline.kernel.store import work
from pipeline.prompt.start.session_brief import BriefRoom, brief_project


@pytest.fixture
def compile_models(monkeypatch):
    def run(*models):
        monkeypatch.setattr(encoder, "is_encoder_compiled", lambda _settings, model: model in models)
        monkeypatch.setattr(encoder, "follows_languages", lambda _settings: True)

    return run


@pytest.mark.parametrize(
    ("compiled", "count", "text"),
    [
        ((), 0, None),
        (
            (),
            9,
            f"9 things you said are waiting for the encoder {ENGLISH}, which is compiled once; it takes some minutes",
        ),
        (
            (ENGLISH,),
            1,
            f"1 thing you said is waiting for the encoder {MULTILINGUAL}, which is compiled once; it takes",
        ),
        ((ENGLISH, MULTILINGUAL), 2, "2 things you said are waiting to be read for memories"),
    ],
)
def test_waiting_turns_are_counted_with_the_reason(compile_models, tmp_path, compiled, count, text):
    compile_models(*compiled)
    said = describe_waiting_turns(load_settings({"REVERIE_HOME": str(tmp_path)}), count)
    assert said is None if text is None else said.startswith(text)


def test_a_session_start_reports_messages_that_capture_has_not_read(workspace, compile_models, tmp_path):
    compile_models()
    settings = load_settings({"REVERIE_HOME": str(tmp_path)})
    workspace = SimpleNamespace(exists=True, database=workspace.database, settings=settings)
    assert list_session_notes(workspace) == ()
    with workspace.database.write() as db:
        work.add(db, [1, 2], [Stage.CAPTURE], time.time())
    notes = list_session_notes(workspace)
    room = BriefRoom(4000, datetime(2026, 1, 2, tzinfo=UTC), notes=notes)
    brief = brief_project(workspace.database, None, AgentSession("s1"), room)
    assert brief.text.startswith("2 things the user said are waiting for the encoder ")
    assert brief.text.endswith("No memory contains them yet.")
