"""A client that holds every answer against what the server says of itself."""

from typing import Any, ClassVar

from flask import Flask
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator

from web.http.app import APIS

HOST = "127.0.0.1:7077"
_ANYWHERE = {404, 405}


class CheckedClient:
    """Call the app; check status, media type and shape of each answer against endpoints and OpenAPI document."""

    # The same for every app of this process, and most of the time that a client takes to be made.
    document: ClassVar[dict[str, Any]] = {}

    def __init__(self, app: Flask, token: str) -> None:
        self._app = app
        self._client = app.test_client()
        self._endpoints = {(e.method, e.path): e for api in APIS for e in api.endpoints}
        self.auth = {"Authorization": f"Bearer {token}", "Host": HOST}
        self.document.update({} if self.document else self._client.get("/openapi.json", headers=self.auth).get_json())

    def browser(self) -> FlaskClient:
        """Return a client that knows no token and keeps its cookies."""
        return self._app.test_client()

    def call(self, method: str, path: str, *, workspace: str | None = None, auth: bool = True, **rest: Any) -> Any:
        """Return the response, checked."""
        headers = dict(self.auth) if auth else {"Host": HOST}
        if workspace is not None:
            headers["X-Reverie-Workspace"] = workspace
        headers |= rest.pop("headers", {})
        response = self._client.open(path, method=method, headers=headers, **rest)
        self._check(method, path, response)
        return response

    def get(self, path: str, **rest: Any) -> Any:
        return self.call("GET", path, **rest)

    def post(self, path: str, json: Any = None, **rest: Any) -> Any:
        return self.call("POST", path, **({} if json is None else {"json": json}), **rest)

    def put(self, path: str, json: Any, **rest: Any) -> Any:
        return self.call("PUT", path, json=json, **rest)

    def patch(self, path: str, json: Any, **rest: Any) -> Any:
        return self.call("PATCH", path, json=json, **rest)

    def delete(self, path: str, **rest: Any) -> Any:
        return self.call("DELETE", path, **rest)

    def write(self, content: str, **fields: Any) -> str:
        """Store a memory and return its id."""
        workspace = fields.pop("workspace", None)
        response = self.post("/v1/memories", {"content": content, **fields}, workspace=workspace)
        assert response.status_code == 201, response.get_data(as_text=True)
        return str(response.get_json()["id"])

    def recall(self, query: str, *, workspace: str | None = None, **fields: Any) -> dict[str, Any]:
        """Return the answer to a recall."""
        response = self.post("/v1/recall", {"query": query, **fields}, workspace=workspace)
        assert response.status_code == 200, response.get_data(as_text=True)
        answer: dict[str, Any] = response.get_json()
        return answer

    def find_ids(self, query: str, **fields: Any) -> list[str]:
        """Return the ids that a recall finds, best first."""
        return [hit["id"] for hit in self.recall(query, **fields)["results"]]

    def _check(self, method: str, path: str, response: Any) -> None:
        status, text = response.status_code, response.get_data(as_text=True)
        assert "Traceback" not in text
        assert status != 500, text
        route = self._route(method, path)
        if status >= 400:
            assert response.content_type == "application/problem+json"
            problem = response.get_json()
            self._conforms(problem, "Problem")
            assert problem["status"] == status
            if status == 503:
                assert int(response.headers["Retry-After"]) > 0
        operation = self.document["paths"].get(route, {}).get(method.lower())
        if operation is None:
            assert status in {*_ANYWHERE, 200, 400, 401, 403}
            return
        assert str(status) in operation["responses"], f"{method} {route} does not document {status}"
        answer = self._endpoints[method, route].answer
        if status < 400 and answer is not None:
            assert response.content_type == "application/json"
            answer.model_validate_json(text)
            self._conforms(response.get_json(), answer.__name__)

    def _route(self, method: str, path: str) -> str | None:
        adapter = self._app.url_map.bind("localhost")
        plain = path.partition("?")[0]
        if not adapter.test(plain, method):
            return None
        rule, _ = adapter.match(plain, method, return_rule=True)
        return str(rule.rule).replace("<", "{").replace(">", "}")

    def _conforms(self, value: Any, model: str) -> None:
        components = {"components": self.document["components"]}
        Draft202012Validator({"$ref": f"#/components/schemas/{model}", **components}).validate(value)
