"""People who share a data directory, their tokens, and their roles in workspaces."""

import hashlib
import re
import secrets
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from config.paths import WORKSPACE_ID, is_personal, is_workspace_id
from pipeline.kernel.errors import Conflict, FieldError, InvalidField, NotFound, StoreUnavailable
from pipeline.kernel.lru import LruCache
from pipeline.kernel.records.people import PERSON_ID, TOKEN_PREFIX, Caller, Person, Role
from pipeline.kernel.store.operations import Operations
from pipeline.kernel.store.people import People, Token
from pipeline.kernel.times import utc_now, utc_text
from pipeline.text.normalize import normalize_id

MOST_SESSIONS = 1000


@dataclass(frozen=True, slots=True)
class _Folders:
    """The folder of the person, and that of the session's last event."""

    person: str
    last: str


class PersonFolders:
    """The folders of the sessions that were heard last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sessions: LruCache[tuple[str, ...], _Folders] = LruCache(MOST_SESSIONS)

    def find(self, session: tuple[str, ...], folder: str, roots: Sequence[str], *, is_of_person: bool) -> str:
        """Return the folder in which the person of a session speaks; note the folder of an event.

        Only a prompt, or the start of a session, shows that the person moved: a folder that changed during a turn was
        changed by the agent. The first of the `roots` is the folder that the person opened, the others were added.
        """
        with self._lock:
            known = self._sessions.peek(session)
            folder = folder or (known.last if known is not None else "")
            person = known.person if known is not None else next(iter(roots), folder)
            is_added = any(folder and Path(folder).is_relative_to(root) for root in roots[1:])
            if is_of_person and known is not None and folder != known.last and not is_added:
                person = folder
            self._sessions.put(session, _Folders(person, folder))
            return person


MAX_NAME_CHARS = 100
MAX_ID_CHARS = 32
MAX_EMAIL_CHARS = 254
USUAL_DEVICE = "first"
# The last use of a token is recorded once per hour, so that reading rarely writes.
USE_NOTED_EVERY = timedelta(hours=1)
_BETWEEN = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token of a person's device: `secret` is shown once and never stored."""

    person: Person
    token: Token
    secret: str
    grants: Mapping[str, Role] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PersonRecord:
    """A person with their tokens and roles."""

    person: Person
    tokens: Sequence[Token]
    grants: Mapping[str, Role]
    email: str | None = None
    subject: str | None = None


def find_caller(people: People, operations: Operations, token: str) -> Caller | None:
    """Return the caller with a person's token, None for a revoked, expired or unknown token."""
    if not token.startswith(TOKEN_PREFIX):
        return None
    now = datetime.now(UTC)
    caller_and_use = people.find_caller(_hash(token), utc_text(now))
    if caller_and_use is None:
        return None
    caller, used_at = caller_and_use
    if caller.token_id is not None and (used_at is None or used_at < utc_text(now - USE_NOTED_EVERY)):
        try:
            people.record_use(caller.token_id, utc_text(now))
        except StoreUnavailable as error:
            # A failure to record the use must not reject the request.
            operations.record_error("people", f"the use of a token was not noted: {error}")
    return caller


def admit(
    people: People,
    name: str,
    *,
    workspace: str,
    role: Role | None = None,
    new_role: Role | None = None,
    is_admin: bool = False,
    email: str | None = None,
    issuer: str = "",
    subject: str | None = None,
    device: str | None = None,
    lifetime: timedelta | None = None,
) -> NewToken:
    """Add a person, or find the person with this name, and give them a token; all in one transaction.

    They get the role in the workspace; without it, a new person who is no admin gets the `new_role`. The address, or
    the subject at the issuer, identifies them at the OpenID Connect provider. Raises InvalidField for an invalid value,
    Conflict for an address, a subject or a device that is in use.
    """
    slug_of(name)
    if role or new_role:
        check_shared(workspace)
    with people.transaction() as changing:
        is_new = find_person(changing, name) is None
        person = add_person(changing, name, is_admin=is_admin)
        if email is not None:
            set_email(changing, person, email)
        if subject is not None:
            set_subject(changing, person, issuer, subject)
        made = add_token(changing, person, device, lifetime)
        role = role or (new_role if is_new and not is_admin else None)
        if role is None:
            return made
        changing.grant(person.id, workspace, role)
    return replace(made, grants={workspace: role})


def add_person(people: People, name: str, *, is_admin: bool = False) -> Person:
    """Add a person, or return the person with this name; raise InvalidField for an invalid name."""
    shown = normalize_id(" ".join(name.split()))
    person_id = slug_of(shown)
    known = find_person(people, shown)
    if known is not None:
        if is_admin and not known.is_admin:
            people.set_admin(known.id, is_admin=True)
        return Person(known.id, known.name, known.is_admin or is_admin)
    person = Person(_free_id(person_id, people.list_ids()), shown, is_admin)
    people.add(person, utc_now())
    return person


def add_token(people: People, person: Person, device: str | None = None, lifetime: timedelta | None = None) -> NewToken:
    """Create a token for a person's device; raise Conflict if the device already has a valid token."""
    named = name_device(people, person) if device is None else normalize_id(" ".join(device.split()))
    if not named or len(named) > MAX_NAME_CHARS:
        raise InvalidField(FieldError("device", f"must have 1 to {MAX_NAME_CHARS} characters"))
    now = datetime.now(UTC)
    expires_at = None if lifetime is None else utc_text(now + lifetime)
    used = {
        token.device for token in people.list_tokens() if token.person == person.id and is_valid(token, utc_text(now))
    }
    if named in used:
        raise Conflict(f"{person.id} has a token for the device {named}: revoke it, or name another device")
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    token = Token(secrets.token_hex(4), person.id, named, utc_text(now), expires_at)
    people.add_token(token, _hash(secret))
    return NewToken(person, token, secret)


def name_device(people: People, person: Person) -> str:
    """Return an unused name for a person's device."""
    used = {token.device for token in people.list_tokens() if token.person == person.id}
    return next(name for name in (USUAL_DEVICE, *(f"device-{n}" for n in range(2, len(used) + 3))) if name not in used)


def is_valid(token: Token, now: str) -> bool:
    """Return whether a token is valid now."""
    return token.revoked_at is None and (token.expires_at is None or token.expires_at > now)


def set_email(people: People, person: Person, email: str) -> None:
    """Set the verified e-mail address that identifies a person at the OpenID Connect provider.

    Raises Conflict if another person has it.
    """
    known = normalize_email(email)
    if not is_address(known) or len(known) > MAX_EMAIL_CHARS:
        limits = f"must have 1 to {MAX_EMAIL_CHARS} characters, an @ and no space"
        raise InvalidField(FieldError("email", f"{limits}. For a subject, use --subject"))
    _check_free(person, people.find_by_email(known), "address")
    people.set_email(person.id, known)


def set_subject(people: People, person: Person, issuer: str, subject: str) -> None:
    """Set the subject that identifies a person at an OpenID Connect provider without e-mail addresses.

    Raises Conflict if another person has it.
    """
    known = subject.strip()
    if not known or len(known) > MAX_EMAIL_CHARS:
        raise InvalidField(FieldError("subject", f"must have 1 to {MAX_EMAIL_CHARS} characters"))
    if not issuer:
        raise InvalidField(FieldError("subject", "belongs to a provider: set oidc_issuer first"))
    _check_free(person, people.find_by_subject(issuer, known), "subject")
    people.set_subject(person.id, issuer, known)


def is_address(text: str) -> bool:
    """Return whether a text can be an e-mail address."""
    return "@" in text and not any(letter.isspace() for letter in text)


def _check_free(person: Person, holder: Person | None, what: str) -> None:
    if holder is not None and holder.id != person.id:
        raise Conflict(f"{holder.id} is known by this {what}")


def normalize_email(email: str) -> str:
    """Return an e-mail address in normal form: in lower case."""
    return email.strip().lower()


def has_tokens(people: People) -> bool:
    """Return whether any person has a valid token."""
    now = utc_now()
    return any(is_valid(token, now) for token in people.list_tokens())


def list_people(people: People) -> list[PersonRecord]:
    """List all people with their tokens and roles."""
    tokens, grants, identifiers = people.list_tokens(), people.list_grants(), people.list_identifiers()
    return [
        PersonRecord(
            person,
            [token for token in tokens if token.person == person.id],
            {workspace: role for who, workspace, role in grants if who == person.id},
            *identifiers.get(person.id, (None, None)),
        )
        for person in people.list_people()
    ]


def find_person(people: People, named: str) -> Person | None:
    """Return a person by id or name, None if there is none."""
    sought = {named, slug_or_none(named)}
    return next(
        (person for person in people.list_people() if person.id in sought or slug_or_none(person.name) in sought),
        None,
    )


def get_person(people: People, named: str) -> Person:
    """Return a person by id or name; raise NotFound if there is none."""
    person = find_person(people, named)
    if person is None:
        raise NotFound("There is no such person.")
    return person


def revoke(people: People, person: Person, device: str | None = None, token_id: str | None = None) -> list[Token]:
    """Revoke all tokens of a person, the token of a device, or a token by id; raise NotFound if there is none."""
    now = utc_now()
    with people.transaction() as changing:
        valid = [token for token in changing.list_tokens() if token.person == person.id and token.revoked_at is None]
        meant = [token for token in valid if device in (None, token.device) and token_id in (None, token.id)]
        if not meant:
            raise NotFound(f"{person.id} has no such token.")
        changing.revoke([token.id for token in meant], now)
        if device is None and token_id is None:
            changing.sign_out(person.id, now)
    return meant


def grant(people: People, person: Person, workspace_id: str, role: Role) -> None:
    """Give a person a role in a workspace; raise InvalidField for a store that belongs to one person."""
    check_shared(workspace_id)
    people.grant(person.id, workspace_id, role)


def check_shared(workspace_id: str) -> None:
    """Raise InvalidField unless an id is that of a workspace that people may share."""
    if not is_workspace_id(workspace_id):
        raise InvalidField(FieldError("workspace", f"must match {WORKSPACE_ID.pattern}"))
    if is_personal(workspace_id):
        raise InvalidField(FieldError("workspace", "is a personal store, which cannot be opened to other people"))


def ungrant(people: People, person: Person, workspace_id: str) -> None:
    """Remove a person's role in a workspace; raise NotFound if there is none."""
    if not people.ungrant(person.id, workspace_id):
        raise NotFound(f"{person.id} has no role in {workspace_id}.")


def remove_person(people: People, person: Person) -> None:
    """Remove a person and revoke their tokens; their id is never used again, and their memories stay."""
    people.remove(person.id, utc_now())


def slug_of(name: str) -> str:
    """Return the id for a name; raise InvalidField if no id can be made of it."""
    if len(name) > MAX_NAME_CHARS:
        raise InvalidField(FieldError("name", f"must have at most {MAX_NAME_CHARS} characters"))
    slug = slug_or_none(name)
    if slug is None:
        raise InvalidField(FieldError("name", "must contain a Latin letter or a digit"))
    return slug


def slug_or_none(name: str) -> str | None:
    """Return the id for a name, None if no id can be made of it."""
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = _BETWEEN.sub("-", letters).strip("-")[:MAX_ID_CHARS].strip("-")
    return slug if PERSON_ID.fullmatch(slug) else None


def _free_id(base_id: str, taken: set[str]) -> str:
    # Leave space for the number within the maximum length.
    numbered = (f"{base_id[: MAX_ID_CHARS - 5]}-{number}" for number in range(2, len(taken) + 3))
    return next(free_id for free_id in (base_id, *numbered) if free_id not in taken)


def _hash(token: str) -> str:
    # A token is as random as a key and in no dictionary; a slow hash would only slow every request.
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
