"""People of a home: who there is, what each may do in which workspace, and who makes a request. No I/O."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from config.paths import PERSONAL_WORKSPACE, is_personal, personal_workspace_of

# How a person's token begins, so that it is recognised wherever it is written by mistake.
TOKEN_PREFIX = "rvp_"  # noqa: S105 - no token itself
PERSON_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
TokenClass = Literal["home", "person", "admin", "none"]


class Role(StrEnum):
    """What a person may do in a workspace: each role may what the one before it may."""

    READER = "reader"
    WRITER = "writer"
    OWNER = "owner"

    def includes(self, other: "Role") -> bool:
        """Tell whether who has this role may do what another one is needed for."""
        return _ORDER[self] >= _ORDER[other]


_ORDER = {role: place for place, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with tokens of their own; the id is a slug of the name and never changes."""

    id: str
    name: str
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request, and what they may.

    Without a person it is the home's owner, who holds the home's token; nobody (`none`) asks for what is open to all.
    """

    person: Person | None = None
    token_id: str | None = None
    token_class: TokenClass = "home"  # noqa: S105 - names no token
    roles: Mapping[str, Role] = field(default_factory=dict)

    @property
    def person_id(self) -> str | None:
        """Return the person's id, None for the home's owner."""
        return None if self.person is None else self.person.id

    @property
    def is_admin(self) -> bool:
        """Tell whether what concerns the whole home is theirs to see and do."""
        return self.token_class in ("home", "admin")

    def role_in(self, workspace_id: str) -> Role | None:
        """Return the role in a workspace, None without a grant; a personal store is open to its person alone."""
        if self.person is not None and workspace_id == personal_workspace_of(self.person.id):
            return Role.OWNER
        if is_personal(workspace_id):
            is_own = workspace_id == PERSONAL_WORKSPACE and self.person is None
            return Role.OWNER if is_own and self.is_admin else None
        return Role.OWNER if self.is_admin else self.roles.get(workspace_id)

    def may(self, workspace_id: str, role: Role) -> bool:
        """Tell whether the caller has a role in a workspace, or one that includes it."""
        found = self.role_in(workspace_id)
        return found is not None and found.includes(role)


HOME_OWNER = Caller()
NOBODY = Caller(token_class="none")  # noqa: S106 - names no token
