"""Whatever the endpoint does, a job gets an answer of use or none, and the meter never runs over its cap."""

import json
import logging
import multiprocessing
from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from config.settings import explain_settings, load_settings
from config.toml_files import SettingsError
from pipeline.features.model.extractor import (
    MAX_ANSWER_BYTES,
    MAX_PROMPT_CHARS,
    MAX_REPLY_TOKENS,
    JobModel,
    ModelEndpoint,
)
from pipeline.kernel.store import runs
from pipeline.kernel.store.sqlite import SqliteDatabase
from tests.fakes.in_process import PROFILE, scratch_database
from tests.fakes.model_server import breaks_off, drips, hangs, hangs_up, model_server, says, sends
from tests.support.stack import wait_until

DAY = "2026-11-21"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
# Put together here, so that no scanner takes this file for a leak.
SECRET = "ghp_" + "a1B2c3D4" * 4 + "e5F6"


class Rule(BaseModel):
    rule: str


@pytest.fixture
def server():
    with model_server() as server:
        yield server


@pytest.fixture
def database():
    with scratch_database() as database:
        yield database


@pytest.fixture
def model(database, server):
    def made(**fields):
        return JobModel(database, server.endpoint(**fields), lambda: NOON)

    return made


def list_use(database):
    with database.read() as db:
        rows = db.execute("SELECT job, calls, failures, tokens FROM model_use WHERE day = ?", (DAY,))
        return {job: tuple(counts) for job, *counts in rows}


def test_an_answer_comes_back_and_is_metered(database, server, model):
    server.behave = says("fine", {"total_tokens": 120})
    asked = model(model="small", api_key="k-1")
    assert asked.complete("lessons", "be short", "what is " + "it " * 100) == "fine"
    assert list_use(database) == {"lessons": (1, 0, 120)}
    assert server.paths == ["/v1/chat/completions"]
    assert server.requests[0]["model"] == "small"
    assert server.requests[0]["max_tokens"] == MAX_REPLY_TOKENS
    assert server.headers[0]["Authorization"] == "Bearer k-1"
    assert asked.tally == {"answered": 1}


def test_without_a_url_nothing_is_called_and_nothing_counted(database):
    model = JobModel(database, ModelEndpoint(""))
    assert model.complete("lessons", "s", "t") is None
    assert model.tally == {"off": 1}
    assert list_use(database) == {}


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
def test_an_address_is_taken_with_or_without_its_path(server, model, path):
    assert model(url=f"http://127.0.0.1:{server.server_port}{path}").complete("j", "s", "t") == "fine"
    assert server.paths == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    ("behave", "reason"),
    [
        (hangs, "timeout"),
        (drips, "timeout"),
        (hangs_up, "broken"),
        (breaks_off, "broken"),
        (sends(b"oops", 500), "refused"),
        (sends(b"", 302, Location="/elsewhere"), "refused"),
        (sends(b"<html>hello</html>"), "junk"),
        (sends(b"[" * 100_000), "junk"),
        (sends(b'{"choices": []}'), "junk"),
        (sends(b'{"choices": "many"}'), "junk"),
        (says(None), "junk"),
        (says(["a", "list"]), "junk"),
        (says(""), "junk"),
        (says("x" * 5000), "junk"),
        (sends(b" " * (MAX_ANSWER_BYTES + 1)), "junk"),
    ],
)
def test_llm_failure_is_counted_and_charged_without_retry(database, server, model, behave, reason):
    server.behave = behave
    asked = model(timeout_s=0.3 if reason == "timeout" else 5.0)
    assert asked.complete("consolidate", "system", "text") is None
    assert asked.tally == {reason: 1}
    calls, failures, tokens = list_use(database)["consolidate"]
    assert (calls, failures) == (1, 1)
    assert tokens > 0
    wait_until("the server has read the request", lambda: server.paths)
    assert server.paths == ["/v1/chat/completions"], "no redirect is followed and nothing is tried again"


def test_an_endpoint_that_is_not_there_costs_nothing(database, server, model):
    with model_server() as gone:
        endpoint = gone.endpoint()
    asked = JobModel(database, endpoint, lambda: NOON)
    assert asked.complete("j", "s", "t") is None
    assert asked.tally == {"unreachable": 1}
    assert list_use(database) == {"j": (1, 1, 0)}


@pytest.mark.parametrize("url", ["http://", "http://[::1", "http://127.0.0.1:99999/v1", "http://\udc80/"])
def test_an_address_that_is_none_is_no_answer(database, url):
    asked = JobModel(database, ModelEndpoint(url, timeout_s=0.3), lambda: NOON)
    assert asked.complete("j", "s", "t") is None
    assert asked.tally == {"unreachable": 1}


def test_an_endpoint_that_fails_twice_in_a_row_is_left_alone(server, model):
    server.behave = sends(b"oops", 500)
    asked = model()
    assert [asked.complete("j", "s", "t") for _ in range(5)] == [None] * 5
    assert asked.tally == {"refused": 2, "given_up": 3}
    assert len(server.requests) == 2


def test_a_success_between_two_failures_keeps_the_endpoint(server, model):
    asked = model()
    for behave in (sends(b"", 500), says("a"), sends(b"", 500), says("b")):
        server.behave = behave
        asked.complete("j", "s", "t")
    assert asked.tally == {"refused": 2, "answered": 2}


def test_a_model_that_wants_the_limit_by_its_new_name_gets_it(server, model):
    def behave(handler):
        if "max_tokens" in server.requests[-1]:
            handler.answer(400, b'{"error": {"message": "use max_completion_tokens instead"}}')
        else:
            says("fine")(handler)

    server.behave = behave
    asked = model()
    assert [asked.complete("j", "s", "t"), asked.complete("j", "s", "t")] == ["fine", "fine"]
    assert len(server.requests) == 3
    assert "temperature" not in server.requests[-1]


@pytest.mark.parametrize(
    ("usage", "least", "most"),
    [
        ({"total_tokens": 0}, 500, 510),
        ({"total_tokens": -(10**9)}, 500, 510),
        ({"total_tokens": 10**12}, 500, 2600),
        ({"total_tokens": "many"}, 500, 1000),
        ({"total_tokens": True}, 500, 510),
        ("none", 500, 1000),
        (None, 500, 1000),
    ],
)
def test_a_usage_that_lies_neither_hides_nor_invents_a_cost(database, server, model, usage, least, most):
    server.behave = says("y" * 20, usage)
    assert model().complete("j", "s" * 100, "t" * 1900) == "y" * 20
    assert least <= list_use(database)["j"][2] <= most


def test_past_the_cap_nothing_is_called(database, server, model):
    server.behave = says("fine", {"total_tokens": 700})
    asked = model(daily_tokens=1500)
    answers = [asked.complete(job, "s", "t") for job in ("one", "two", "three", "four")]
    # An honest price for so short a text lies below what this endpoint asks, so it is bounded by what it can be.
    assert answers[0] == "fine"
    assert asked.tally["capped"] == 4 - asked.tally["answered"]
    assert sum(tokens for _, _, tokens in list_use(database).values()) <= 1500
    assert len(server.requests) == asked.tally["answered"] < 4


def test_a_call_counts_before_it_is_made(database, server, model):
    seen = []

    def behave(handler):
        seen.append(list_use(database))
        says("fine")(handler)

    server.behave = behave
    model().complete("j", "s", "t")
    assert seen[0]["j"][2] >= MAX_REPLY_TOKENS, "a process that is killed now has spent it"


def test_daily_token_budget_is_reset_the_next_day(database, server):
    now = [NOON]
    asked = JobModel(database, server.endpoint(daily_tokens=600), lambda: now[0])
    server.behave = hangs_up
    asked.complete("j", "s", "t")
    server.behave = says("fine")
    assert asked.complete("j", "s", "t") is None
    now[0] = datetime(2026, 11, 22, 1, tzinfo=UTC)
    assert asked.complete("j", "s", "t") == "fine"


def spend(file, endpoint, start):
    database = SqliteDatabase(file, PROFILE, create=False)
    start.wait()
    model = JobModel(database, endpoint, lambda: NOON)
    for _ in range(6):
        model.complete("j", "s", "t")
    database.close()


def test_two_processes_share_one_cap(database, server):
    server.behave = sends(b"{}", 200)
    cap = 3 * (MAX_REPLY_TOKENS + 10)
    context = multiprocessing.get_context("spawn")
    start = context.Event()
    endpoint = server.endpoint(daily_tokens=cap)
    both = [context.Process(target=spend, args=(database.file, endpoint, start)) for _ in range(2)]
    for process in both:
        process.start()
    start.set()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    # Each gives up after two failures: four calls are wanted, and the cap lets three of them happen.
    calls, _, tokens = list_use(database)["j"]
    assert calls == len(server.requests) == 3
    assert tokens <= cap


@given(st.lists(st.tuples(st.integers(0, 900), st.integers(-900, 300)), max_size=30), st.integers(0, 3000))
def test_reservations_never_pass_the_cap(calls, cap):
    with scratch_database() as database, database.write() as db:
        for needed, change in calls:
            before = runs.count_tokens(db, DAY)
            taken = runs.reserve_tokens(db, DAY, "j", needed, cap)
            assert taken == (before + needed <= cap)
            if taken:
                assert runs.count_tokens(db, DAY) <= cap
                runs.correct_tokens(db, DAY, "j", max(change, -needed))
            assert runs.count_tokens(db, DAY) >= 0


def test_no_part_of_a_secret_reaches_the_model(server, model):
    asked = model()
    asked.complete("j", f"system {SECRET}", f"text {SECRET}")
    asked.complete("j", "s", "x" * (MAX_PROMPT_CHARS - 12) + f" {SECRET}")
    assert SECRET[:10] not in server.prompts
    assert len(server.requests) == 2


def test_a_prompt_is_bounded(server, model):
    model().complete("j", "s", "word " * 100_000)
    assert len(server.requests[0]["messages"][1]["content"]) <= MAX_PROMPT_CHARS


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        ('{"rule": "a"}', "a"),
        ('```json\n{"rule": "a"}\n```', "a"),
        ('Here you are: {"rule": "a"}', None),
        ('{"rule": 3}', None),
        ('{"rules": "a"}', None),
        ('["rule"]', None),
        ('{"rule": "forbidden"}', None),
        ("", None),
    ],
)
def test_an_object_is_taken_strictly(database, server, model, reply, rule):
    server.behave = says(reply)
    asked = model()
    answer = asked.ask("j", "s", "t", Rule, lambda found: found.rule != "forbidden")
    assert (answer.rule if answer else None) == rule
    assert asked.tally == ({"answered": 1} if rule else {"junk": 1})
    assert list_use(database)["j"][:2] == (1, 0 if rule else 1)


def test_the_environments_proxies_are_not_used(server, model, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    assert model().complete("j", "s", "t") == "fine"


def test_the_key_is_neither_shown_nor_logged(server, model, tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    key = "sk-very-private"
    settings = load_settings({"REVERIE_HOME": str(tmp_path), "REVERIE_LLM_API_KEY": key})
    assert settings.llm_api_key.reveal() == key
    origins = explain_settings({"REVERIE_HOME": str(tmp_path), "REVERIE_LLM_API_KEY": key})
    shown = json.dumps([(o.name, o.value, str(o.value)) for o in origins], default=str)
    server.behave = hangs_up
    endpoint = server.endpoint(api_key=key)
    model(api_key=key).complete("j", "s", "t")
    assert server.headers[0]["Authorization"] == f"Bearer {key}"
    assert key not in shown + repr(settings) + repr(endpoint) + caplog.text


def test_llm_api_key_in_a_config_file_is_rejected(tmp_path):
    (tmp_path / "config.toml").write_text('llm_api_key = "sk-very-private"')
    with pytest.raises(SettingsError, match="can only be set by REVERIE_LLM_API_KEY") as caught:
        load_settings({"REVERIE_HOME": str(tmp_path)})
    assert "very-private" not in str(caught.value)
