"""One workspace, as its use cases reach it: its settings, its files, its database, how it takes memories in."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from config.paths import WorkspacePaths, is_personal, personal_workspace_of
from config.settings import Settings, environment_of, load_settings
from config.toml_files import SettingsError, parse_toml
from config.workspace_configs import ConfigState
from pipeline.kernel.errors import NotFound, StoreClosed, StoreUnavailable
from pipeline.kernel.git.branches import find_side_branch
from pipeline.kernel.lru import LruCache
from pipeline.kernel.records import SHORT_ID, Scope, Viewer
from pipeline.kernel.records.access import Access, WritePolicy, decide_access
from pipeline.kernel.records.people import HOME_OWNER, Caller, personal_scope
from pipeline.kernel.store import agent_sessions, memories, refusals
from pipeline.kernel.store.database import Database, Databases
from pipeline.kernel.store.operations import Operations
from pipeline.kernel.store.peers import Peers
from pipeline.kernel.store.refusals import RefusedBy
from pipeline.kernel.store.stores import Stores

# Settings of workspaces that have some of their own.
MOST_SETTINGS = 64


@dataclass(frozen=True, slots=True)
class _Own:
    """A workspace's settings, of which state of its own, their names, and why those cannot be taken, if so."""

    state: ConfigState | None
    settings: Settings
    names: frozenset[str] = frozenset()
    problem: str | None = None


class WorkspaceSettings:
    """Read each workspace's settings on top of the home's, and again when its own have changed.

    A workspace whose own cannot be taken is incognito: they may have said to store nothing.
    """

    def __init__(self, settings: Settings, stores: Stores) -> None:
        self.home = settings
        self.operations = stores.operations
        self.peers = stores.peers
        self._configs = stores.configs
        self._known: LruCache[str, _Own] = LruCache(MOST_SETTINGS)
        self._plain = _Own(None, settings)

    def get(self, workspace_id: str) -> Settings:
        """Return the settings in force in a workspace."""
        return self._own(workspace_id).settings

    def access(self, workspace_id: str, caller: Caller = HOME_OWNER, through: str | None = None) -> Access:
        """Return what a caller may change, store and show in a workspace, by the settings that are in force now.

        A personal store that is entered `through` a workspace has the settings of that workspace, except for its own.
        """
        own = self._own(workspace_id)
        settings = own.settings if through is None else self.get(through)
        if through is not None and own.names:
            settings = replace(settings, **{name: getattr(own.settings, name) for name in own.names})
        return decide_access(workspace_id, settings, caller)

    def problem(self, workspace_id: str) -> str | None:
        """Return why a workspace's own settings cannot be taken, None when they can."""
        return self._own(workspace_id).problem

    def _own(self, workspace_id: str) -> _Own:
        state = self._configs.state(workspace_id)
        if state is None:
            return self._plain
        return self._known.get(
            workspace_id, lambda known: known.state == state, partial(self._read, workspace_id, state)
        )

    def _read(self, workspace_id: str, state: ConfigState) -> _Own:
        try:
            own = self._configs.load(workspace_id, state)
            settings = load_settings(environment_of(self.home.paths), own)
            return _Own(state, settings, frozenset(parse_toml(own.text, own.place)))
        except SettingsError as error:
            self.operations.record_error("settings", str(error), workspace=workspace_id)
            return _Own(state, replace(self.home, incognito=True), frozenset({"incognito"}), str(error))


@dataclass(frozen=True, slots=True)
class Workspace:
    """One workspace; nothing of it is opened before it is needed."""

    id: str
    paths: WorkspacePaths
    _databases: Databases
    _settings: WorkspaceSettings
    caller: Caller = HOME_OWNER
    """Who works on it, and how."""
    folder: Path | None = None
    """The folder from which this request comes; its branch marks what is stored."""
    through: str | None = None
    """The workspace through which a personal store is entered."""

    @property
    def database(self) -> Database:
        """Return the database; raise NotFound when nothing was ever written here."""
        return self._databases.get(self.id)

    def create(self) -> Database:
        """Return the database, made if need be; call it once it is sure that something will be stored."""
        return self._databases.get(self.id, create=True)

    @property
    def settings(self) -> Settings:
        """Return the settings in force."""
        return self._settings.get(self.id)

    @property
    def access(self) -> Access:
        """Return what the caller may change, store and show here."""
        return self._settings.access(self.id, self.caller, self.through)

    @property
    def person_id(self) -> str | None:
        """Return the person who works on it, None for the home's owner."""
        return self.caller.person_id

    @property
    def home_settings(self) -> Settings:
        """Return the settings of the home: enough for who asks for what no workspace has of its own."""
        return self._settings.home

    @property
    def person(self) -> "Workspace":
        """Return the store of what is about the person, whether anything was written there or not."""
        return replace(self.sibling(personal_workspace_of(self.person_id)), through=self.id)

    def sibling(self, workspace_id: str) -> "Workspace":
        """Return another workspace of the home."""
        if self.id == workspace_id:
            return self
        return replace(self, id=workspace_id, paths=self.paths.sibling(workspace_id), through=None)

    def list_siblings(self) -> list["Workspace"]:
        """List every workspace of the home that exists."""
        return [self.sibling(workspace_id) for workspace_id in self._databases.ids()]

    def list_changeable(self) -> list["Workspace"]:
        """List this workspace and the personal store, if they exist and the caller may change them."""
        stores = {store.id: store for store in (self, self.person)}.values()
        return [store for store in stores if store.exists and not store.access.is_read_only]

    def of(self, caller: Caller) -> "Workspace":
        """Return the same workspace as a caller works on it."""
        return replace(self, caller=caller)

    def from_folder(self, folder: Path | None) -> "Workspace":
        """Return the same workspace for a request from a folder."""
        return self if folder == self.folder else replace(self, folder=folder)

    @property
    def personal_scope(self) -> Scope:
        """Return the scope of what is about the person who works on it."""
        return personal_scope(self.person_id)

    @property
    def onlooker(self) -> Viewer:
        """Return who sees all that is not another person's own."""
        return Viewer(everything=True, person=self.person_id)

    @property
    def is_personal(self) -> bool:
        """Return whether this is a personal store itself."""
        return is_personal(self.id)

    @property
    def personal_memory_enabled(self) -> bool:
        """Return whether memories about the person are in a personal store and shown in this workspace."""
        return not self.is_personal and self.settings.personal

    @property
    def personal_store(self) -> "Workspace | None":
        """Return the store of memories about the person; None where there is none yet, or it is not used here."""
        person = self.person
        return person if self.personal_memory_enabled and person.exists else None

    @property
    def operations(self) -> Operations:
        """Return the operations journal of the home."""
        return self._settings.operations

    @property
    def peers(self) -> Peers:
        """Return what the data directory knows of its other machines."""
        return self._settings.peers

    @property
    def exists(self) -> bool:
        """Return whether anything was ever written here."""
        return self._databases.exists(self.id)

    def write_policy(self) -> WritePolicy:
        """Return how memories are taken in.

        Raises ReadOnly if the caller may store none, StoreClosed if the workspace's settings are invalid.
        """
        access = self.access
        access.require_change()
        problem = self._settings.problem(self.id)
        if problem is not None:
            raise StoreClosed(
                f"Nothing can be stored in this workspace because its settings are invalid. Correct them: {problem}"
            )
        return WritePolicy(
            review=self.settings.review,
            incognito=access.is_incognito,
            author=self.person_id,
            is_purged=self.was_purged_by_person,
            # Folders of other people are on their own machines, and what is about a person concerns no branch.
            branch=None if self.folder is None or self.person_id or self.is_personal else find_side_branch(self.folder),
        )

    def personal_write_policy(self, sessions: Collection[str]) -> WritePolicy:
        """Return how memories of some sessions that are about the person are stored, in their own store.

        They are stored only if both stores may be written to, and if neither is incognito, nor a session here.
        """
        here, there = self.write_policy(), self.person.write_policy()
        return replace(here, incognito=here.incognito or there.incognito or is_any_incognito(self, sessions))

    def was_purged_by_person(self, content_hash: str) -> bool:
        """Return whether the person who works on it purged a text in any workspace; their personal store marks it."""
        personal_id = personal_workspace_of(self.person_id)
        if personal_id == self.id:
            return False
        try:
            # Without a personal store, nothing is known about the person, and they purged nothing.
            if not self._databases.exists(personal_id):
                return False
            with self._databases.get(personal_id).read() as db:
                refusal = refusals.find(db, content_hash)
        except NotFound:
            # Deleted since.
            return False
        except StoreUnavailable as error:
            # A personal store that cannot be read does not keep other workspaces from being written to.
            self.operations.record_error("purge", f"purged texts cannot be recognized: {error}", workspace=personal_id)
            return False
        return refusal is not None and refusal.how is RefusedBy.PURGED


def is_incognito(workspace: Workspace, sessions: Collection[str]) -> bool:
    """Return whether a workspace, or one of some sessions in it, is incognito; a use case asks once."""
    return workspace.access.is_incognito or is_any_incognito(workspace, sessions)


def is_any_incognito(workspace: Workspace, sessions: Collection[str]) -> bool:
    """Return whether one of some sessions of a workspace is incognito by itself, or in its current turn."""
    if not (sessions and workspace.exists):
        return False
    with workspace.database.read() as db:
        return agent_sessions.is_any_silent(db, sessions)


def is_turn_silent(workspace: Workspace, session_id: str) -> bool:
    """Return whether nothing of a session's current turn is stored."""
    with workspace.database.read() as db:
        return agent_sessions.is_any_turn_silent(db, [session_id])


def find_home(workspace: Workspace, memory_id: str) -> Workspace:
    """Return where a memory is kept: here, or with what is about the person."""
    person = workspace.personal_store
    if person is None:
        return workspace
    if workspace.exists:
        with workspace.database.read() as db:
            known = memories.get(db, memory_id)
        # What was shared here and withdrawn is kept with its person.
        if known is not None and not (known.archived_at is not None and known.is_of_person):
            return workspace
    with person.database.read() as db:
        memory = memories.get(db, memory_id)
    return person if memory is not None and memory.is_of_person else workspace


def resolve_id(workspace: Workspace, given: str) -> str:
    """Return the id that is meant: what agents and people are shown is its end."""
    if len(given) != SHORT_ID:
        return given
    ids = []
    for store in filter(None, (workspace, workspace.personal_store)):
        with store.database.read() as db:
            ids += memories.list_ids_ending_in(db, given.upper(), workspace.person_id)
    return ids[0] if len(ids) == 1 else given
