"""Commands for accounts, tokens and roles; they work on the files of the data directory without a server."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.local_store import open_home
from web.cli.render import plain, print_if_none, table
from web.cli.state import State

if TYPE_CHECKING:
    from pipeline.bootstrap.command import CommandContainer
    from pipeline.services.people import PersonRecord
    from pipeline.store.people import Token

ROLES = ("reader", "writer", "owner")
DEFAULT_ROLE = "writer"
_LIFETIME = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def parse_lifetime(_context: click.Context, _parameter: click.Parameter, text: str | None) -> timedelta | None:
    """Return a duration such as `12h`, `90d` or `8w`."""
    if text is None:
        return None
    match = _LIFETIME.fullmatch(text)
    if match is None:
        raise click.BadParameter("Use a number of hours, days or weeks: 12h, 90d or 8w.")
    return int(match[1]) * _UNITS[match[2]]


@contextmanager
def _changing_people(state: State, command: str, workspace_id: str | None = None) -> Iterator["CommandContainer"]:
    """Open the data directory for a command; record the command in the access log before it prints anything."""
    from pipeline.services.access_log import note_command

    with open_home(state) as home:
        yield home
        note_command(home.people, f"reverie user {command}", workspace_id)


@click.group(cls=Group)
def user() -> None:
    """Manage accounts of a shared server: people, their tokens, and their roles in workspaces."""


@user.command("add")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), help=f"Role in the workspace.  [default: {DEFAULT_ROLE}]")
@click.option("--admin", "is_admin", is_flag=True, help="Allow managing accounts, workers and every workspace.")
@click.option("--email", metavar="ADDRESS", help="Verified e-mail address in OpenID Connect.")
@click.option("--subject", metavar="SUB", help="Subject in OpenID Connect, if the provider sends no verified address.")
@click.option("--device", metavar="NAME", help="Device that uses the token; each device gets its own token.")
@click.option(
    "--expires",
    "lifetime",
    callback=parse_lifetime,
    metavar="TIME",
    help="Lifetime of the token, such as 12h, 90d or 8w.",
)
@pass_state
def add(
    state: State,
    name: str,
    role: str | None,
    email: str | None,
    subject: str | None,
    device: str | None,
    lifetime: timedelta | None,
    *,
    is_admin: bool,
) -> None:
    """Create a token for NAME and print it once, as the last line; create the account if it does not exist.

    With --role or --workspace, the account gets that role in that workspace. A new account always gets a role.
    """
    from pipeline.records.people import Role
    from pipeline.services import people

    workspace = state.named_workspace or state.settings.workspace
    with _changing_people(state, "add", workspace) as home:
        is_new = people.find_person(home.people, name) is None
        needs_role = role or state.named_workspace or (is_new and not is_admin)
        new_role = Role(role or DEFAULT_ROLE) if needs_role else None
        if new_role is not None:
            people.check_shared(workspace)
        person = people.add_person(home.people, name, is_admin=is_admin)
        people.set_identifiers(home.people, person, email, state.settings.oidc_issuer, subject)
        made = people.add_token(home.people, person, device or people.name_device(home.people, person), lifetime)
        if new_role is not None:
            people.grant(home.people, person, workspace, new_role)
    roles = {} if new_role is None else {workspace: str(new_role)}
    answer = {"id": person.id, "name": person.name, "admin": person.is_admin, "grants": roles, **_describe(made.token)}

    def show() -> None:
        if new_role is not None:
            click.echo(f"{person.id} is {new_role} of {workspace}")
        _print_token(person.id, made.token, made.secret)

    state.show({**answer, "token": made.secret}, show)


def _print_token(person_id: str, token: "Token", secret: str) -> None:
    expiry = f", expires {token.expires_at}" if token.expires_at else ""
    click.echo(f"token of {person_id} for the device {plain(token.device)}{expiry}; it is shown only once:")
    click.echo(secret)


@user.command("list")
@pass_state
def list_(state: State) -> None:
    """List accounts with their roles, and their tokens with the time of the last use."""
    from pipeline.services import people

    with open_home(state, only_reads=True) as home:
        records = people.list_people(home.people)

    def show() -> None:
        print_if_none(records, "There are no accounts besides yours. Add one with `reverie user add NAME`.")
        rows = [row for record in records for row in _rows(record)]
        if rows:
            table(["id", "name", "roles", "device", "token", "last used", "state"], rows)

    state.show([_record(record) for record in records], show)


@user.command("revoke")
@click.argument("name")
@click.option("--device", metavar="NAME", help="Only revoke the token of this device.")
@click.option("--token", "token_id", metavar="ID", help="Only revoke this token, by its ID in `reverie user list`.")
@pass_state
def revoke(state: State, name: str, device: str | None, token_id: str | None) -> None:
    """Revoke the tokens of NAME; the server rejects them from the next request on."""
    from pipeline.services import people

    with _changing_people(state, "revoke") as home:
        revoked = people.revoke(home.people, people.get_person(home.people, name), device, token_id)
    names = ", ".join(f"{token.id} ({plain(token.device)})" for token in revoked)
    state.show([_describe(token) for token in revoked], f"revoked: {names}")


@user.command("remove")
@click.argument("name")
@options.yes
@pass_state
def remove(state: State, name: str, *, yes: bool) -> int:
    """Delete the account NAME with its tokens and roles. Its memories stay; private ones stay inaccessible."""
    from pipeline.services import people

    with open_home(state) as home:
        people.get_person(home.people, name)
    question = f"Delete the account {name} with its tokens and roles permanently?"
    if not options.confirm(state, question, yes=yes, refusal="nothing was removed"):
        return 1
    with _changing_people(state, "remove") as home:
        person = people.get_person(home.people, name)
        people.remove_person(home.people, person)
    state.show({"removed": person.id}, f"removed {person.id}; their memories stay")
    return 0


@user.command("grant")
@click.argument("name")
@click.argument("workspace_id", metavar="WORKSPACE")
@click.argument("role", type=click.Choice(ROLES))
@pass_state
def grant(state: State, name: str, workspace_id: str, role: str) -> None:
    """Give NAME a role in WORKSPACE; it replaces an earlier role."""
    from pipeline.records.people import Role
    from pipeline.services import people

    with _changing_people(state, "grant", workspace_id) as home:
        person = people.get_person(home.people, name)
        people.grant(home.people, person, workspace_id, Role(role))
    answer = {"id": person.id, "workspace": workspace_id, "role": role}
    state.show(answer, f"{person.id} is {role} of {workspace_id}")


@user.command("ungrant")
@click.argument("name")
@click.argument("workspace_id", metavar="WORKSPACE")
@pass_state
def ungrant(state: State, name: str, workspace_id: str) -> None:
    """Remove the role of NAME in WORKSPACE."""
    from pipeline.services import people

    with _changing_people(state, "ungrant", workspace_id) as home:
        person = people.get_person(home.people, name)
        people.ungrant(home.people, person, workspace_id)
    state.show({"id": person.id, "workspace": workspace_id}, f"{person.id} no longer has a role in {workspace_id}")


def _describe(token: "Token") -> dict[str, Any]:
    return {
        "token_id": token.id,
        "device": token.device,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "last_used_at": token.last_used_at,
        "revoked_at": token.revoked_at,
    }


def _record(record: "PersonRecord") -> dict[str, Any]:
    return {
        "id": record.person.id,
        "name": record.person.name,
        "admin": record.person.is_admin,
        "email": record.email,
        "subject": record.subject,
        "grants": dict(record.grants),
        "tokens": [_describe(token) for token in record.tokens],
    }


def _rows(record: "PersonRecord") -> list[list[str]]:
    person = record.person
    head = [person.id, plain(person.name), _format_grants(record.grants, is_admin=person.is_admin)]
    tokens = [
        [plain(token.device), token.id, token.last_used_at or "never", _state_of(token)] for token in record.tokens
    ]
    return [[*(head if number == 0 else ["", "", ""]), *row] for number, row in enumerate(tokens or [["", "", "", ""]])]


def _format_grants(grants: Mapping[str, Any], *, is_admin: bool) -> str:
    return ", ".join([*(["admin"] if is_admin else []), *(f"{role} of {name}" for name, role in grants.items())])


def _state_of(token: "Token") -> str:
    from pipeline.services.people import is_valid
    from pipeline.times import utc_now

    if token.revoked_at is not None:
        return "revoked"
    if not is_valid(token, utc_now()):
        return "expired"
    return "valid" if token.expires_at is None else f"until {token.expires_at}"
