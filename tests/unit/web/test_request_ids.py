"""Every request has one name: in its answer, its problem, the logs; a proxy's where that is believed."""

import logging
import re

import pytest
from flask import Flask, abort

from config.settings import Settings
from web.http.connections import BY_PROXY
from web.http.listener import Listener
from web.http.problems import REQUEST_ID_HEADER, RequestIdFilter, register_problems, register_request_ids
from web.http.security import register_security


@pytest.fixture
def client():
    app = Flask("test")
    register_request_ids(app)
    register_security(app, lambda: "token", Listener.of(Settings()), {})
    register_problems(app)
    app.add_url_rule("/gone", "gone", lambda: abort(404))
    return app.test_client()


def ask(client, given=None, *, by_proxy=False):
    headers = {"Host": "localhost", "Authorization": "Bearer token"} | (
        {} if given is None else {REQUEST_ID_HEADER: given}
    )
    return client.get("/gone", headers=headers, environ_overrides={BY_PROXY: by_proxy})


def test_an_answer_has_an_id_and_its_problem_the_same(client):
    first, second = ask(client), ask(client)
    assert re.fullmatch(r"[0-9A-Z]{26}", first.headers[REQUEST_ID_HEADER])
    assert first.headers[REQUEST_ID_HEADER] != second.headers[REQUEST_ID_HEADER]
    assert first.json["instance"] == f"urn:reverie:request:{first.headers[REQUEST_ID_HEADER]}"


def test_rejected_request_has_a_request_id(client):
    answer = client.get("/gone", headers={"Host": "evil.example"})
    assert answer.status_code == 403
    assert answer.headers[REQUEST_ID_HEADER]


def test_request_id_is_accepted_only_from_the_proxy(client):
    given = "0b7e9d1c-41d2-4c55-a1c1-9a3c4a3d1f00"
    assert ask(client, given, by_proxy=True).headers[REQUEST_ID_HEADER] == given
    assert ask(client, given).headers[REQUEST_ID_HEADER] != given


@pytest.mark.parametrize("given", ["", "short", "x" * 65, "with space", 'quote"quote', "a=b;c=d,e"])
def test_an_id_that_could_be_more_than_an_id_is_not_taken(client, given):
    assert ask(client, given, by_proxy=True).headers[REQUEST_ID_HEADER] != given


def test_a_line_of_the_log_ends_with_the_requests_id(client):
    record = logging.LogRecord("x", logging.INFO, __file__, 1, "%s of %s", ("one", "two"), None)
    assert RequestIdFilter().filter(record)
    assert record.getMessage() == "one of two"
    lines = []

    def note():
        inner = logging.LogRecord("x", logging.INFO, __file__, 1, "%s of 100 %%", ("one",), None)
        RequestIdFilter().filter(inner)
        lines.append(inner.getMessage())
        return ""

    client.application.view_functions["gone"] = note
    answer = ask(client)
    assert lines == [f"one of 100 % (request {answer.headers[REQUEST_ID_HEADER]})"]
