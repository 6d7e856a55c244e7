"""Identity of a signed-in browser."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Holder:
    """A person (signed in with a token or a provider), or the owner of the data directory if both are None."""

    person_id: str | None = None
    token_id: str | None = None
