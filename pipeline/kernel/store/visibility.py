"""Visibility of memories to a caller as one SQL condition: archival, review, reach, validity and the filter."""

from dataclasses import replace
from typing import Any

from pipeline.kernel.records import OWNED, PERSONAL, EdgeKind, Filter, Scope, ScopeKind, Sensitivity, Viewer
from pipeline.kernel.records.people import PERSON_ID, PRIVATE, owner_of
from pipeline.kernel.store.rows import join_conditions
from pipeline.kernel.times import utc_now

ONLY_NORMAL = f"sensitivity = '{Sensitivity.NORMAL}'"
# As in `edges.list_superseding`. The newer memory is visible wherever the older one is.
_NOT_SUPERSEDED = f"""(subject IS NOT NULL OR NOT EXISTS (
    SELECT 1 FROM edge e JOIN memory newer ON newer.seq = e.from_seq
        WHERE e.to_seq = memory.seq AND e.kind = '{EdgeKind.SUPERSEDES}'
        AND newer.archived_at IS NULL AND newer.candidate = 0 AND (newer.valid_to IS NULL OR newer.valid_to > ?)
        AND (newer.scope_kind = '{ScopeKind.WORKSPACE}'
            OR (newer.scope_kind = memory.scope_kind AND newer.scope_id = memory.scope_id))))"""  # noqa: S608


def may_be_derived_from(table: str = "memory") -> str:
    """Return the condition under which something may be derived from a memory.

    It is not private, and none of its sessions is incognito by now.
    """
    silent = "(SELECT session_id FROM incognito)"
    return (
        f"({table}.session_id IS NULL OR {table}.session_id NOT IN {silent}) "
        f"AND NOT ({table}.scope_kind = '{ScopeKind.SESSION}' AND {table}.scope_id IN {silent}) "
        f"AND {table}.sensitivity = '{Sensitivity.NORMAL}'"
    )


def condition(criteria: Filter) -> tuple[str, list[Any]]:
    """Return an SQL condition on the memory table for a filter, and its values."""
    parts = [
        "archived_at IS NOT NULL" if criteria.archived else "archived_at IS NULL",
        "candidate = 1" if criteria.candidates else "candidate = 0",
    ]
    values: list[Any] = []
    for clause, clause_values in (_reach(criteria), _validity(criteria)):
        parts.append(clause)
        values.extend(clause_values)
    if criteria.viewer.only_normal:
        parts.append(ONLY_NORMAL)
    if criteria.current:
        parts.append(_NOT_SUPERSEDED)
        values.append(utc_now())
    if criteria.kinds:
        # A session has fewer memories than a kind; an expression keeps the planner from the index of kinds.
        kind = "kind" if criteria.session_id is None else "kind || ''"
        parts.append(f"{kind} IN ({','.join('?' * len(criteria.kinds))})")
        values.extend(criteria.kinds)
    parts += ["EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?)"] * len(criteria.tags)
    values.extend(criteria.tags)
    chosen, chosen_values = join_conditions(
        {
            "session_id = ?": criteria.session_id,
            "occurred_at >= ?": criteria.since,
            "occurred_at < ?": criteria.until,
            "occurred_at <= ?": criteria.as_of,
            "branch = ?": criteria.branch,
            "json_extract(details, '$.chain') = ?": criteria.chain,
        }
    )
    return " AND ".join([*parts, chosen]), [*values, *chosen_values]


def lasting_condition() -> tuple[str, list[Any]]:
    """Return the condition for memories visible to the entire workspace now or, for future facts, later."""
    reach, values = _reach(Filter())
    now, lasts = utc_now(), "(valid_to IS NULL OR valid_to > ?) AND (expires_at IS NULL OR expires_at > ?)"
    return f"archived_at IS NULL AND candidate = 0 AND {reach} AND {lasts}", [*values, now, now]


def named_by_condition(column: str, person: str | None) -> str:
    """Return the condition for names of a person's sessions and agents, or without a person, for names of no person."""
    if person is None:
        return f"({column} IS NULL OR replace({column}, '{OWNED}', '') = {column})"
    if PERSON_ID.fullmatch(person) is None:
        raise ValueError("not a person's id")
    return f"substr({column}, 1, {len(person) + len(OWNED)}) = '{person}{OWNED}'"


def visible_sessions_condition(person: str | None) -> str:
    """Return the condition for rows of a person's sessions that are not incognito."""
    # An impression may belong to no session, and NULL is in no list and not outside of it.
    is_shown = "coalesce(session_id, '') NOT IN (SELECT session_id FROM incognito)"
    return f"{is_shown} AND {named_by_condition('session_id', person)}"


def visible_to_condition(person: str | None) -> str:
    """Return the condition that excludes other people's private memories, like `is_open_to`."""
    everyones = ", ".join(f"'{kind}'" for kind in ScopeKind if kind not in PRIVATE)
    return f"(scope_kind IN ({everyones}) OR {named_by_condition('scope_id', person)})"


def owned_condition(criteria: Filter) -> tuple[str, list[Any]]:
    """Return the condition for memories that a caller sees in addition to the workspace's."""
    clause, values = condition(criteria)
    # Repeated for the planner: only then does it use the index of owned memories.
    return f"scope_kind <> '{ScopeKind.WORKSPACE}' AND {clause}", values


def reaches(scope: Scope, viewer: Viewer) -> bool:
    """Return whether a memory of a scope is visible to a viewer, like the SQL condition."""
    if scope.kind is ScopeKind.WORKSPACE:
        return True
    if viewer.everything:
        return is_open_to(scope, viewer.person)
    if scope == PERSONAL:
        return viewer.person is None
    return bool(scope.id) and scope.id == getattr(viewer, scope.kind)


def is_open_to(scope: Scope, person: str | None) -> bool:
    """Return whether a scope is not private to another person."""
    return scope.kind not in PRIVATE or owner_of(scope.id) == person


def is_allowed_by_filter(scope: Scope, criteria: Filter) -> bool:
    """Return whether the filter allows a memory of a scope, like `condition`."""
    if criteria.scope is not None:
        return scope == criteria.scope
    viewer = criteria.viewer
    # A query for a single session counts as coming from there.
    return reaches(scope, replace(viewer, session=viewer.session or criteria.session_id))


def reach_condition(viewer: Viewer) -> tuple[str, list[Any]]:
    """Return the condition for memories in a viewer's reach, regardless of their state."""
    return _reach(Filter(viewer=viewer))


def viewer_within(scope: Scope, person: str | None = None) -> Viewer:
    """Return the viewer inside a scope: it sees the workspace's memories and the scope's own.

    `person` is the viewer if the scope has no owner.
    """
    named = {str(kind): scope.id if kind is scope.kind else None for kind in ScopeKind}
    whose = owner_of(scope.id) or person
    owners = named["user"], named["agent"], named["session"], named["task"]
    return Viewer(*owners, person=whose)


def _reach(criteria: Filter) -> tuple[str, list[Any]]:
    if criteria.scope is not None:
        return "scope_kind = ? AND scope_id = ?", [criteria.scope.kind, criteria.scope.id or ""]
    viewer = criteria.viewer
    if viewer.everything:
        return visible_to_condition(viewer.person), []
    owners = {
        ScopeKind.USER: viewer.user,
        ScopeKind.AGENT: viewer.agent,
        # A query for a single session counts as coming from there.
        ScopeKind.SESSION: viewer.session or criteria.session_id,
        ScopeKind.TASK: viewer.task,
    }
    # Owners have no empty names: an empty column means no owner.
    named = {kind: owner for kind, owner in owners.items() if owner}
    anyone = f"scope_kind = '{ScopeKind.WORKSPACE}'"
    if viewer.person is None:
        # A user memory without a name belongs to the data directory's owner.
        anyone += f" OR (scope_kind = '{ScopeKind.USER}' AND scope_id = '')"
    owned = "".join(f" OR (scope_kind = '{kind}' AND scope_id = ?)" for kind in named)
    return f"({anyone}{owned})", list(named.values())


def _validity(criteria: Filter) -> tuple[str, list[Any]]:
    moment = criteria.as_of or utc_now()
    clause = "(valid_from IS NULL OR valid_from <= ?) AND (valid_to IS NULL OR valid_to > ?)"
    if criteria.archived:
        # Ended facts are selected by their end.
        return clause, [moment, moment]
    return f"{clause} AND (expires_at IS NULL OR expires_at > ?)", [moment, moment, moment]
