"""What is in another language than English is told from what only looks odd."""

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from pipeline.text.languages import is_foreign

DATA = Path(__file__).parents[2] / "data"


@pytest.mark.parametrize(
    "text",
    [
        "Los despliegues salen los jueves por la tarde.",
        "warum schlägt der Test in CI fehl",
        "Le certificat du serveur a expiré dans la nuit.",
        "Il servizio di posta non è partito.",
        "O Pedro é responsável pela migração para o Kubernetes.",
        "Wir haben Redis durch SQLite ersetzt, weil der Worker zu viele Verbindungen hielt",
        "Nowa wersja działa tylko na Linuksie",
        "Сервер слушает порт 8123",
        "接口超时设置为三十秒",
        "テストは火曜日に失敗した",
        "프론트엔드는 스벨트로 작성되었다",
        "Ο διακομιστής ακούει στη θύρα 80",
        "Vi har flyttat kön från Redis till SQLite",
        "Toplantı her pazartesi sabah dokuzda ve bir saat sürüyor",
    ],
)
def test_other_languages_are_detected(text):
    assert is_foreign(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ok",
        "We moved the queue from Redis to SQLite.",
        "José García owns the façade of the café",
        "pytest -x tests/unit --maxfail=1",
        "return os.open(path, flags | os.O_NONBLOCK)",
        "ERROR: die Verbindung is what the log says when the server is gone and the client waits for it",
        "the label reads 設定 and the tests compare it",
        "EADDRINUSE 0.0.0.0:8080",
        "α = 0.05, β = 0.2",
        "no, no, no: do not deploy on Fridays",
    ],
)
def test_english_names_and_code_are_not_detected_as_foreign(text):
    assert not is_foreign(text)


def test_labelled_workspace_memories_are_separated_by_language():
    workspace = json.loads((DATA / "workspace.json").read_text(encoding="utf-8"))["memories"]
    # By its README these are the English ones.
    english = [memory["content"] for memory in workspace if memory["key"] <= "m176"]
    assert len(english) == 176
    assert [text for text in english if is_foreign(text)] == []
    assert sum(is_foreign(memory["content"]) for memory in workspace[len(english) :]) >= 54


def test_most_questions_in_other_languages_are_detected():
    questions = json.loads((DATA / "cross_language.json").read_text(encoding="utf-8"))["questions"]
    assert sum(is_foreign(question["text"]) for question in questions) >= 0.9 * len(questions)


@given(st.text())
def test_any_text_is_read(text):
    assert is_foreign(text) in (True, False)
