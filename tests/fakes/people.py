"""People of a home in tests: their tokens, and what each is answered."""

from datetime import timedelta
from typing import Any

from flask import Flask

from pipeline.bootstrap.web import WebContainer
from pipeline.features.people import usecases as people
from pipeline.kernel.records.people import Role
from tests.fakes.client import CheckedClient


def add_person(
    container: WebContainer,
    name: str,
    *,
    admin: bool = False,
    lifetime: timedelta | None = None,
    **roles: str,
) -> str:
    """Add somebody with a role in each named workspace; return their token."""
    person = people.add_person(container.people, name, is_admin=admin)
    made = people.add_token(container.people, person, people.name_device(container.people, person), lifetime)
    for workspace, role in roles.items():
        people.grant(container.people, person, workspace, Role(role))
    return made.secret


class PersonClient(CheckedClient):
    """A client that holds somebody's token and names a workspace."""

    def __init__(self, app: Flask, container: WebContainer, token: str, workspace: str) -> None:
        super().__init__(app, container.token)
        self.auth = {**self.auth, "Authorization": f"Bearer {token}", "X-Reverie-Workspace": workspace}

    def words(self, query: str, **fields: Any) -> list[str]:
        """Return the texts that a recall finds."""
        return [hit["content"] for hit in self.recall(query, **fields)["results"]]
