"""Commands for accounts, tokens and roles."""

import re
from collections.abc import Mapping
from typing import Any

import click

from pipeline.kernel.times import utc_now
from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import Fields, plain, print_table
from web.cli.state import State
from web.http.client import build_path

ROLES = ("reader", "writer", "owner")
DEFAULT_ROLE = "writer"
NO_PEOPLE = "There are no accounts besides yours. Add one with `reverie user add NAME`."
_LIFETIME = re.compile(r"([1-9][0-9]{0,4})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}


def parse_lifetime(_context: click.Context, _parameter: click.Parameter, text: str | None) -> int | None:
    """Return the hours of a duration such as `12h`, `90d` or `8w`."""
    if text is None:
        return None
    match = _LIFETIME.fullmatch(text)
    if match is None:
        raise click.BadParameter("Use a number of hours, days or weeks: 12h, 90d or 8w.")
    return int(match[1]) * _HOURS[match[2]]


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
    "expires_hours",
    callback=parse_lifetime,
    metavar="TIME",
    help="Lifetime of the token, such as 12h, 90d or 8w.",
)
@pass_state
def add(state: State, /, name: str, role: str | None, *, is_admin: bool, **others: str | int | None) -> None:
    """Create a token for NAME and print it once, as the last line; create the account if it does not exist.

    With --role or --workspace, the account gets that role in that workspace. A new account always gets a role.
    """
    workspace = state.named_workspace or state.settings.workspace
    needed = "role" if role or state.named_workspace else "new_role"
    body = {"name": name, "admin": is_admin, "workspace": workspace, needed: role or DEFAULT_ROLE}
    body |= options.select_given_options(others)
    made = state.ask_local("POST", build_path("people"), body, workspace=workspace)

    granted = "".join(f"{made['person']} is {role} of {name}\n" for name, role in made["grants"].items())
    expiry = f", expires {made['expires_at']}" if made["expires_at"] else ""
    text = f"token of {made['person']} for the device {plain(made['device'])}{expiry}; it is shown only once:"
    answer = {"id": made["person"], **made, "last_used_at": None, "revoked_at": None}
    state.show(answer, f"{granted}{text}\n{made['token']}")


@user.command("list")
@pass_state
def list_(state: State) -> None:
    """List accounts with their roles, and their tokens with the time of the last use."""
    people = state.ask_local("GET", build_path("people"))["items"]
    rows = [{**person, "token": token} for person in people for token in (person["tokens"] or [None])]
    answer = [{**person, "tokens": [_name_id(token) for token in person["tokens"]]} for person in people]
    state.show(answer, lambda _: print_table(rows, TOKEN, empty=NO_PEOPLE))


@user.command("revoke")
@click.argument("name")
@click.option("--device", metavar="NAME", help="Only revoke the token of this device.")
@click.option("--token", "token_id", metavar="ID", help="Only revoke this token, by its ID in `reverie user list`.")
@pass_state
def revoke(state: State, name: str, device: str | None, token_id: str | None) -> None:
    """Revoke the tokens of NAME; the server rejects them from the next request on."""
    chosen = options.select_given_options({"device": device, "token": token_id})
    revoked = state.ask_local("DELETE", _path(name, "tokens"), query=chosen)["items"]
    names = ", ".join(f"{token['id']} ({plain(token['device'])})" for token in revoked)
    state.show([_name_id(token) for token in revoked], f"revoked: {names}")


@user.command("remove")
@click.argument("name")
@options.yes
@pass_state
def remove(state: State, name: str, *, yes: bool) -> None:
    """Delete the account NAME with its tokens and roles. Its memories stay; private ones stay inaccessible."""
    question = f"Delete the account {name} with its tokens and roles permanently?"
    options.confirm(state, question, yes=yes, refusal="nothing was removed")
    removed = state.ask_local("DELETE", _path(name))["id"]
    state.show({"removed": removed}, f"removed {removed}; their memories stay")


@user.command("grant")
@click.argument("name")
@click.argument("workspace_id", metavar="WORKSPACE", callback=options.check_name)
@click.argument("role", type=click.Choice(ROLES))
@pass_state
def grant(state: State, name: str, workspace_id: str, role: str) -> None:
    """Give NAME a role in WORKSPACE; it replaces an earlier role."""
    person = state.ask_local("PUT", _path(name, "grants", workspace_id), {"role": role})["id"]
    state.show({"id": person, "workspace": workspace_id, "role": role}, f"{person} is {role} of {workspace_id}")


@user.command("ungrant")
@click.argument("name")
@click.argument("workspace_id", metavar="WORKSPACE", callback=options.check_name)
@pass_state
def ungrant(state: State, name: str, workspace_id: str) -> None:
    """Remove the role of NAME in WORKSPACE."""
    person = state.ask_local("DELETE", _path(name, "grants", workspace_id))["id"]
    state.show({"id": person, "workspace": workspace_id}, f"{person} no longer has a role in {workspace_id}")


def _path(name: str, *parts: str) -> str:
    # A person is also found by a name that differs in punctuation only; a path cannot contain a slash or be empty.
    return build_path("people", name.replace("/", "-") or "-", *parts)


def _state_of(row: Mapping[str, Any]) -> str | None:
    token = row["token"]
    if token is None or token["revoked_at"] is not None:
        return token and "revoked"
    if token["expires_at"] is None:
        return "valid"
    return f"until {token['expires_at']}" if token["expires_at"] > utc_now() else "expired"


TOKEN: Fields = {
    "id": "id",
    "name": "name",
    "roles": lambda row: ", ".join(
        [*(["admin"] if row["admin"] else []), *(f"{role} of {name}" for name, role in row["grants"].items())]
    ),
    "device": "token.device",
    "token": "token.id",
    "last used": lambda row: row["token"] and (row["token"]["last_used_at"] or "never"),
    "state": _state_of,
}


def _name_id(token: Mapping[str, Any]) -> dict[str, Any]:
    return {"token_id" if name == "id" else name: value for name, value in token.items()}
