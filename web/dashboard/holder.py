"""Whom a browser is signed in as."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Holder:
    """A person, by a token of theirs or by the provider, else the home's owner."""

    person_id: str | None = None
    token_id: str | None = None
