"""What the contract names and this version does not do yet: said plainly, never pretended."""

from collections.abc import Callable

from flask import Response

from web.endpoint import Api, Call, Endpoint
from web.problems import problem

api = Api("later")

PLANNED: tuple[tuple[str, str], ...] = (
    ("GET", "/v1/changes"),
    ("POST", "/v1/changes"),
)


def _make_planned_handler(method: str, path: str) -> Callable[..., Response]:
    def not_yet(call: Call, **path_values: str) -> Response:  # noqa: ARG001 - every handler takes a call
        return problem(501, f"{method} {path} is not in this version; the README's status table says what is")

    words = path.replace("{", "").replace("}", "").strip("/").replace("/", "_")
    not_yet.__name__ = f"{method.lower()}_{words}"
    return not_yet


for _method, _path in PLANNED:
    api.route(Endpoint(_method, _path, "Planned; not in this version", status=501, problems=(501,)))(
        _make_planned_handler(_method, _path)
    )
