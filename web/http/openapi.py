"""The OpenAPI 3.1 document, generated from the declarations of the endpoints."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from config.paths import READ_ONLY_HEADER, WORKSPACE_HEADER, WORKSPACE_ID
from pipeline.kernel.records.people import Role
from pipeline.text.names import MAX_NAME_CHARS
from web.features.ingest.http import SOURCE_ID
from web.http.answers import Problem
from web.http.contract import INCOGNITO_HEADER
from web.http.endpoint import MAX_IF_MATCH_CHARS, MAX_PATH_PART_CHARS, Endpoint
from web.http.security import OPEN_PATHS
from web.version import VERSION

REF = "#/components/schemas/{model}"
# The problems of requests without a token, and of all others: those read the store, which may be unavailable.
OPEN_PROBLEMS = (400, 403)
COMMON_PROBLEMS = (400, 401, 403, 429, 503)
# Schemas of the parameters of paths.
_PATH_PARTS: Mapping[str, dict[str, Any]] = {
    "subject": {"maxLength": MAX_NAME_CHARS},
    "attribute": {"maxLength": MAX_NAME_CHARS},
    "source": {"maxLength": 128, "pattern": f"^(?:{SOURCE_ID.pattern})$"},
    "workspace": {"maxLength": 64, "pattern": f"^(?:{WORKSPACE_ID.pattern})$"},
}
MEANING = {
    400: "Malformed request",
    401: "Missing or wrong token",
    403: "Foreign Host or Origin, or the caller has no permission",
    404: "Not found",
    405: "Not offered without a session",
    406: "The Accept header does not name the media type",
    409: "Conflict",
    412: "The memory is not in the state that If-Match names",
    413: "Body too large",
    415: "Not JSON",
    422: "Invalid field",
    429: "Too many requests",
    502: "Another server does not answer",
    503: "The store is busy, full or out of reach; try again later",
}


# Headers of several routes.
_HEADERS: Mapping[str, Any] = {
    "if_match": {
        "name": "If-Match",
        "in": "header",
        "description": "ETags of the memory, or `*`. The memory is changed only if it is in one of these states.",
        "schema": {"type": "string", "maxLength": MAX_IF_MATCH_CHARS},
    },
    "workspace": {
        "name": WORKSPACE_HEADER,
        "in": "header",
        "schema": {"type": "string", "default": "default", "pattern": "^[a-z0-9][a-z0-9._-]{0,63}$"},
    },
    "incognito": {"name": INCOGNITO_HEADER, "in": "header", "schema": {"type": "boolean", "default": False}},
    "read_only": {"name": READ_ONLY_HEADER, "in": "header", "schema": {"type": "boolean", "default": False}},
}


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """Describe the endpoints."""
    known = list(endpoints)
    schemas = _schemas(known)
    paths: dict[str, Any] = {}
    for endpoint in known:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Reverie",
            "version": VERSION,
            "description": "Local memory for AI coding agents, stored in files of its owner.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "parameters": _HEADERS,
        },
    }


def _schemas(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    models: list[tuple[type[BaseModel], Any]] = [(Problem, "serialization")]
    for endpoint in endpoints:
        models += [(model, "validation") for model in (endpoint.body, endpoint.query) if model is not None]
        if endpoint.answer is not None:
            models.append((endpoint.answer, "serialization"))
    _, schema = models_json_schema(models, ref_template=REF)
    return cast(dict[str, Any], schema["$defs"])


def _operation(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": re.sub(r"\W+", "_", f"{endpoint.method.lower()}{endpoint.path}").strip("_"),
        "parameters": [
            *({"$ref": f"#/components/parameters/{name}"} for name in ("workspace", "incognito", "read_only")),
            *_path_parameters(endpoint),
        ],
        "responses": _responses(endpoint),
    }
    if endpoint.path in OPEN_PATHS:
        operation["security"] = []
    if endpoint.is_conditional:
        operation["parameters"].append({"$ref": "#/components/parameters/if_match"})
    if endpoint.query is not None:
        operation["parameters"] += _query_parameters(schemas[endpoint.query.__name__])
    if endpoint.body is not None:
        operation["requestBody"] = {
            "required": endpoint.body_required,
            "content": {"application/json": {"schema": {"$ref": REF.format(model=endpoint.body.__name__)}}},
        }
    return operation


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "maxLength": MAX_PATH_PART_CHARS} | _PATH_PARTS.get(name, {}),
        }
        for name in re.findall(r"\{(\w+)\}", endpoint.path)
    ]


def _query_parameters(schema: dict[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "schema": field} | ({"required": True} if name in required else {})
        for name, field in schema["properties"].items()
    ]


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    success: dict[str, Any] = {"description": endpoint.summary}
    if endpoint.answer is not None:
        schema = {"$ref": REF.format(model=endpoint.answer.__name__)}
        success["content"] = {endpoint.media_type: {"schema": schema}}
    codes = {*(OPEN_PROBLEMS if endpoint.path in OPEN_PATHS else COMMON_PROBLEMS), *endpoint.problems}
    if endpoint.body is not None:
        codes |= {413, 422}
    if endpoint.query is not None:
        codes.add(422)
    if isinstance(endpoint.need, Role):
        # The answer does not reveal whether a workspace exists that the caller may not enter.
        codes.add(404)
    failure = {"application/problem+json": {"schema": {"$ref": REF.format(model="Problem")}}}
    problems = {str(code): {"description": MEANING[code], "content": failure} for code in sorted(codes)}
    return ({} if endpoint.status == 501 else {str(endpoint.status): success}) | problems
