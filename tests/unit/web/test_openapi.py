import pytest
from pydantic import BaseModel

from web.http.access import Right
from web.http.app import APIS
from web.http.endpoint import Endpoint
from web.http.openapi import COMMON_PROBLEMS, document


class Body(BaseModel):
    name: str


class Answer(BaseModel):
    id: str


class Asked(BaseModel):
    limit: int = 5


ENDPOINTS = [
    Endpoint("POST", "/v1/things", "Make", body=Body, answer=Answer, status=201, problems=(409,)),
    Endpoint("GET", "/v1/things/{thing_id}/parts/{part}", "Read", query=Asked, answer=Answer, problems=(404,)),
    Endpoint("DELETE", "/v1/things/{thing_id}/parts/{part}", "Drop", status=501),
    Endpoint("POST", "/v1/optional", "Perhaps", body=Body, body_required=False),
    Endpoint("GET", "/healthz", "Live", needs=Right.ANYBODY),
]


def test_endpoints_become_a_valid_document():
    from openapi_spec_validator import validate

    described = document(ENDPOINTS)
    validate(described)
    made = described["paths"]["/v1/things"]["post"]
    assert set(made["responses"]) == {"201", "400", "401", "403", "404", "409", "413", "422", "429", "503"}
    assert made["requestBody"]["required"] is True
    both = described["paths"]["/v1/things/{thing_id}/parts/{part}"]
    assert set(both) == {"get", "delete"}
    assert set(both["get"]["responses"]) == {"200", "400", "401", "403", "404", "422", "429", "503"}
    assert [p["name"] for p in both["get"]["parameters"][3:]] == ["thing_id", "part", "limit"]
    assert not any(code.startswith("2") for code in both["delete"]["responses"])
    assert described["paths"]["/v1/optional"]["post"]["requestBody"]["required"] is False


def test_public_endpoint_documents_no_token_or_store_problems():
    alive = document(ENDPOINTS)["paths"]["/healthz"]["get"]
    assert alive["security"] == []
    assert set(alive["responses"]) == {"200", "400", "403"}


def test_routes_do_not_declare_common_problems():
    declared = {endpoint.path: set(endpoint.problems) for api in APIS for endpoint in api.endpoints}
    assert {path: both for path, problems in declared.items() if (both := problems & set(COMMON_PROBLEMS))} == {}


def test_every_problem_is_the_same_document():
    for methods in document(ENDPOINTS)["paths"].values():
        for operation in methods.values():
            for code, response in operation["responses"].items():
                if code >= "400":
                    assert response["content"] == {
                        "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
                    }


def test_every_reference_leads_somewhere():
    described = document(ENDPOINTS)
    found = []

    def walk(value):
        if isinstance(value, dict):
            found.extend(v for k, v in value.items() if k == "$ref")
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(described)
    for reference in found:
        place = described
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


def list_parameters():
    described = document(endpoint for api in APIS for endpoint in api.endpoints)
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            for parameter in operation["parameters"]:
                if "$ref" not in parameter:
                    yield f"{method} {path}", parameter


def test_required_query_parameters_are_marked():
    required = {
        (operation, parameter["name"])
        for operation, parameter in list_parameters()
        if parameter["in"] == "query" and parameter.get("required")
    }
    assert {
        ("delete /v1/memories/{memory_id}/edges", "kind"),
        ("delete /v1/memories/{memory_id}/edges", "to"),
        ("get /v1/graph", "around"),
    } <= required


@pytest.mark.parametrize(
    ("name", "longest"), [("subject", 200), ("attribute", 200), ("source", 128), ("workspace", 64)]
)
def test_parts_of_a_path_have_the_limits_that_the_server_checks(name, longest):
    schemas = [one["schema"] for _, one in list_parameters() if one["in"] == "path" and one["name"] == name]
    assert schemas
    assert all(schema["maxLength"] == longest for schema in schemas)


def test_schema_describes_number_limits_and_allowed_sources():
    schemas = document(endpoint for api in APIS for endpoint in api.endpoints)["components"]["schemas"]
    assert "sync" not in schemas["MemoryBody"]["properties"]["source"]["enum"]
    assert schemas["RecallBody"]["properties"]["k"] == {
        "default": 10,
        "maximum": 100,
        "minimum": 1,
        "title": "K",
        "type": "integer",
    }
