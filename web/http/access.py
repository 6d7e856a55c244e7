"""The rights of callers: one rule for every route, by the right that the route needs."""

from enum import StrEnum

from config.paths import is_personal
from pipeline.kernel.errors import NO_WORKSPACE, Forbidden, NotFound
from pipeline.kernel.records.people import Caller, Role
from pipeline.kernel.store.people import People


class Right(StrEnum):
    """A right that concerns no single workspace: any caller, an admin, or the owner with the token."""

    ANYBODY = "anybody"
    ADMIN = "admin"
    HOME = "home"


Need = Role | Right


def require(caller: Caller, need: Need, workspace_id: str, people: People) -> None:
    """Raise NotFound for a workspace that the caller may not see, Forbidden for a missing right.

    The error does not reveal whether a workspace exists that the caller may not enter.
    """
    if isinstance(need, Right):
        is_enough = need is Right.ANYBODY or (caller.is_admin and (need is Right.ADMIN or caller.person is None))
        if not is_enough:
            who = "the owner or an admin" if need is Right.ADMIN else "the owner"
            raise Forbidden(f"Only {who} of this data directory may do this.")
        return
    role = _find_role(caller, workspace_id, people)
    if role is None:
        raise NotFound(NO_WORKSPACE)
    if not role.includes(need):
        raise Forbidden(f"This needs the role {need} in {workspace_id}; you are {role}. Ask an owner for it.")


def may_enter(caller: Caller, workspace_id: str, people: People) -> bool:
    """Return whether a caller may see that a workspace exists."""
    return _find_role(caller, workspace_id, people) is not None


def _find_role(caller: Caller, workspace_id: str, people: People) -> Role | None:
    is_home_owner = caller.person is None and caller.is_admin
    if is_home_owner and is_personal(workspace_id) and not people.exists:
        # Without people in the data directory it is a workspace like any other.
        return Role.OWNER
    return caller.role_in(workspace_id)
