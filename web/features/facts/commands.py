"""Commands for facts."""

import json
from typing import Any

import click

from web.cli import options
from web.cli.command import Group, pass_state
from web.cli.render import Fields, fill, format_value, plain
from web.cli.state import State

AS_OF = "Time of the value, such as yesterday or 2026-03-01.  [default: now]"
SCOPE = "Scope of the fact.  [default: workspace]"
NO_FACTS = "There are no facts here yet. Set one with `reverie facts set SUBJECT ATTRIBUTE VALUE`."
FACT: Fields = {
    "subject": "subject",
    "attribute": "attribute",
    "value": "value",
    "from": "valid_from",
    "until": "valid_to",
    "source": "source",
    "scope": "scope",
}


@click.group(cls=Group, bare_command="list")
def facts() -> None:
    """Set and look up facts whose values change over time. Without a command, list them."""


@facts.command("list")
@click.option("--subject", help="Only list facts about this subject.")
@click.option("--as-of", type=options.PAST, metavar="TIME", help="Only list values that were valid at this time.")
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@options.limit(50)
@pass_state
def list_facts(state: State, /, limit: int, **filters: Any) -> None:
    """List facts with all their values, or with the values of one time."""
    state.show_list("/v1/facts", limit, FACT, NO_FACTS, **filters)


@facts.command("get")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@click.option("--as-of", type=options.PAST, metavar="TIME", help=AS_OF)
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@pass_state
def get_fact(state: State, /, subject: str, attribute: str, **filters: Any) -> None:
    """Print the value of ATTRIBUTE of SUBJECT."""
    fact = state.ask(lambda client: client.request("GET", ("facts", subject, attribute), query=filters))
    state.show(fact, plain(format_value(fact["value"])))
    until = " until {valid_to}" if fact["valid_to"] else ""
    state.note(fill(f"{{subject}}/{{attribute}}, from {{valid_from}}{until}, {{id}}", fact))


@facts.command("set")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@options.words("value", "VALUE...")
@click.option(
    "--from", "valid_from", type=options.PAST, metavar="TIME", help="When the value becomes valid.  [default: now]"
)
@click.option("--text", is_flag=True, help="Store VALUE as text, even if it looks like a number, true or false.")
@click.option("--scope", callback=options.parse_scope, metavar="KIND[:ID]", help=SCOPE)
@click.option("--source", type=options.SOURCE, help="Source of the fact.")
@click.option("--session", "session_id", metavar="ID", help="Session that the fact belongs to.")
@click.option("--to", metavar="TEAM", help="Store the fact for this team.  [default: local, this machine]")
@pass_state
def set_fact(state: State, /, subject: str, attribute: str, value: str, *, text: bool, **fields: Any) -> None:
    """Set ATTRIBUTE of SUBJECT to VALUE; the history keeps the earlier value."""
    body = {"value": value if text else parse_value(value)} | options.select_given_options(fields)
    fact = state.store(lambda client: client.request("PUT", ("facts", subject, attribute), body), fields["to"])
    replaced = ", replaces {replaced}" if fact.get("replaced") else ""
    reason = ": {reason}" if fact.get("reason") else ""
    state.show(fact, fill(f"{{outcome}} {{subject}}/{{attribute}} = {{value}}{replaced}{reason}", fact))
    for other in fact["similar"]:
        state.note(fill("{subject}/{attribute} may mean the same", other))


@facts.command("end")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@click.option(
    "--at", "valid_to", type=options.PAST, metavar="TIME", help="When the value stops being valid.  [default: now]"
)
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@pass_state
def end_fact(state: State, /, subject: str, attribute: str, **filters: Any) -> None:
    """End the current value of ATTRIBUTE of SUBJECT without a new value."""
    state.act(
        "DELETE", ("facts", subject, attribute), says="{subject}/{attribute} was {value} until {valid_to}", **filters
    )


@facts.command("history")
@click.argument("subject", callback=options.check_name)
@click.argument("attribute", callback=options.check_name)
@click.option("--scope", callback=options.parse_scope_text, metavar="KIND[:ID]", help=SCOPE)
@pass_state
def history(state: State, /, subject: str, attribute: str, **filters: Any) -> None:
    """List all values that ATTRIBUTE of SUBJECT had, oldest first."""
    page = state.ask(lambda client: client.request("GET", ("facts", subject, attribute, "history"), query=filters))
    state.show_page(page, FACT, NO_FACTS)


def parse_value(text: str) -> Any:
    """Return the number or truth value that a text spells exactly, else the text: 3.10 is a version, not 3.1."""
    try:
        value = json.loads(text, parse_constant=str)
    except ValueError:
        return text
    return value if isinstance(value, (bool, int, float)) and json.dumps(value) == text else text
