import logging
from pathlib import Path
from sqlite3 import OperationalError

import pytest
from flask import Flask, abort
from werkzeug.exceptions import RequestEntityTooLarge

from pipeline.kernel import errors
from pipeline.kernel.errors import FieldError, InvalidField, ReverieError
from web.http.answers import Problem
from web.http.problems import problem, register_problems

EXPECTED = {
    errors.InvalidField: 422,
    errors.MalformedRequest: 400,
    errors.NotFound: 404,
    errors.PreconditionFailed: 412,
    errors.ExtraMissing: 501,
    errors.Conflict: 409,
    errors.ReadOnly: 409,
    errors.PeerRefused: 403,
    errors.LimitReached: 429,
    errors.ClockAhead: 403,
    errors.Forbidden: 403,
    errors.RemoteUnreachable: 502,
    errors.StoreUnavailable: 503,
    errors.StoreBusy: 503,
    errors.StoreFull: 503,
    errors.StoreDamaged: 503,
    errors.CopyDiffers: 503,
    errors.StorageUnreachable: 503,
    errors.KeyUnavailable: 503,
    errors.StoreClosed: 503,
}


class Journal:
    def __init__(self):
        self.operations = self
        self.recorded = []

    def record_error(self, component, message):
        self.recorded.append((component, message))


@pytest.fixture
def answer_to():
    app = Flask("test")
    register_problems(app)
    journal = app.extensions["container"] = Journal()

    def raising(error):
        app.view_functions["fail"] = lambda: (_ for _ in ()).throw(error)
        response = app.test_client().get("/fail")
        return response, Problem.model_validate_json(response.get_data()), journal.recorded

    app.add_url_rule("/fail", "fail", lambda: "")
    return raising


def all_errors(kind=ReverieError):
    # Commands have errors of their own, which no request raises.
    below = [one for one in kind.__subclasses__() if not one.__module__.startswith("web.cli")]
    return [kind, *(found for one in below for found in all_errors(one))]


@pytest.mark.parametrize("kind", all_errors())
def test_every_error_of_ours_has_a_problem_document(answer_to, kind, caplog):
    caplog.set_level(logging.CRITICAL)
    given = {
        InvalidField: (FieldError("items.0.kind", "is odd"),),
        errors.CopyDiffers: ("as told", "a key"),
        errors.ForeignDatabaseUnreadable: (Path("as told"), "is locked"),
        errors.UnreadableTranscript: (Path("as told"), "is a link"),
    }
    error = kind(*given.get(kind, ("as told",)))
    response, document, recorded = answer_to(error)
    assert response.status_code == document.status == EXPECTED.get(kind, 500)
    assert response.content_type == "application/problem+json"
    assert (recorded == []) == (kind in EXPECTED)
    assert ("as told" in document.detail) == (kind in EXPECTED and kind is not InvalidField)


def test_rejected_fields_are_named(answer_to):
    _, document, _ = answer_to(InvalidField(FieldError("a.b", "is odd"), FieldError("c", "is even")))
    assert [(e.loc, e.msg) for e in document.errors] == [("a.b", "is odd"), ("c", "is even")]


@pytest.mark.parametrize(
    ("kind", "seconds"), [(errors.StoreBusy, "1"), (errors.StoreFull, "30"), (errors.StoreClosed, "60")]
)
def test_retryable_problem_has_a_retry_after_header(answer_to, kind, seconds):
    assert answer_to(kind("held"))[0].headers["Retry-After"] == seconds


def test_unexpected_error_is_recorded_without_details_in_the_response(answer_to, caplog):
    response, document, recorded = answer_to(RuntimeError("the inner secret"))
    assert response.status_code == 500
    assert "inner secret" not in response.get_data(as_text=True)
    assert document.title == "Internal Server Error"
    assert recorded == [("web", "RuntimeError: the inner secret")]
    assert caplog.records[0].exc_info


def test_a_store_error_of_no_known_kind_may_be_tried_again(answer_to):
    response, _, recorded = answer_to(OperationalError("interrupted"))
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert len(recorded) == 1


def test_errors_of_the_framework_look_the_same(answer_to):
    assert answer_to(RequestEntityTooLarge())[0].status_code == 413
    with pytest.raises(Exception, match="418") as teapot:
        abort(418)
    assert answer_to(teapot.value)[1].status == 418


def test_each_problem_has_a_distinct_type():
    kinds = {problem(status, "").get_json()["type"] for status in (400, 401, 403, 404, 409, 413, 422, 500, 503)}
    assert len(kinds) == 9
    assert all(kind.startswith("urn:reverie:problem:") for kind in kinds)
