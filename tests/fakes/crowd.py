"""Random people in random workspaces: what each wrote, shared and withdrew, and who may see it.

Who may see what is decided here once more, in a few lines, apart from the rule of the store. Every memory holds a word
that no other holds, so that a trace of it is found wherever it stands.
"""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import strategies as st

from pipeline.features.people import usecases as people
from pipeline.kernel.records.people import Role
from tests.fakes.client import HOST
from tests.fakes.in_process import digest_all, fast_settings, open_web, open_worker
from tests.fakes.people import add_person
from web.http.app import create_app

HOME = "home"
PEOPLE = ("ada", "bob", "cyd")
ROLES = ("reader", "writer", "owner")
SCOPES = (
    ("workspace", None),
    ("user", None),
    *((kind, name) for kind in ("agent", "session", "task") for name in "xy"),
)
KINDS = ("fact", "decision", "lesson", "goal", "activity")
WORKSPACES = ("red", "blue")

Scope = tuple[str, str | None]


@dataclass(frozen=True)
class Draft:
    writer: str
    workspace: str
    scope: Scope
    kind: str
    session: str | None


@dataclass(frozen=True)
class Act:
    """Somebody, else its writer, shares a memory or withdraws it; where they may not, nothing comes of it."""

    actor: str | None
    memory: int
    withdraws: bool


@dataclass(frozen=True)
class Look:
    """Somebody asks in some way, as an agent in a session that works on a task."""

    asker: str
    workspace: str
    way: str
    agent: str
    session: str
    task: str
    one: int


@dataclass(frozen=True)
class CrowdPlan:
    roles: dict[str, dict[str, str]]
    drafts: list[Draft]
    acts: list[Act]
    looks: list[Look]


@dataclass
class Written:
    """A memory as the test knows it; `word` stands in no other. In its person's own store it is told everywhere."""

    id: str
    word: str
    writer: str
    workspace: str
    scope: Scope
    kind: str
    shared_in: set[str] = field(default_factory=set)

    @property
    def is_personal(self) -> bool:
        return self.scope[0] == "user" and self.kind != "goal"

    def is_open_to(self, asker: str, workspace: str) -> bool:
        """Tell whether it may be told in a workspace at all: it is shared there, or the asker's own."""
        here = self.is_personal or self.workspace == workspace
        if self.scope[0] in ("workspace", "task"):
            return here
        return workspace in self.shared_in or (here and self.writer == asker)

    def is_told_to(self, look: Look) -> bool:
        """Tell whether an agent may be told it without having asked for it by its id."""
        kind, name = self.scope
        if kind == "workspace" or look.workspace in self.shared_in:
            return self.is_open_to(look.asker, look.workspace)
        named = {"agent": look.agent, "session": look.session, "task": look.task}
        return self.is_open_to(look.asker, look.workspace) and (kind == "user" or named[kind] == name)


class CrowdServer:
    """One server with its people; each example has workspaces of its own in it."""

    def __init__(self, folder):
        self.container = open_web(fast_settings(folder / "home"))
        self.worker = open_worker(fast_settings(folder / "home"))
        self.client = create_app(self.container).test_client()
        self.tokens = {name: add_person(self.container, name) for name in PEOPLE} | {HOME: self.container.token}
        self.numbers = count()

    def open(self, plan: CrowdPlan) -> "Crowd":
        crowd = Crowd(self, next(self.numbers), plan.roles)
        for draft in plan.drafts:
            crowd.write(draft)
        for act in plan.acts:
            crowd.act(act)
        for workspace in WORKSPACES:
            digest_all(self.worker, crowd.names[workspace])
        return crowd

    def close(self):
        self.container.close()
        self.worker.close()


class Crowd:
    def __init__(self, server: CrowdServer, number: int, roles: dict[str, dict[str, str]]) -> None:
        self.server, self.number, self.roles = server, number, roles
        self.names = {workspace: f"{workspace}{number}" for workspace in WORKSPACES}
        self.memories: list[Written] = []
        for name, granted in roles.items():
            person = people.get_person(server.container.people, name)
            for workspace, role in granted.items():
                people.grant(server.container.people, person, self.names[workspace], Role(role))
        for workspace in WORKSPACES:
            self.call(HOME, workspace, "POST", "/v1/memories", json={"content": f"The {workspace} team meets at noon"})

    def call(self, asker: str, workspace: str, method: str, path: str, **rest: Any) -> Any:
        headers = {
            "Authorization": f"Bearer {self.server.tokens[asker]}",
            "Host": HOST,
            "X-Reverie-Workspace": self.names[workspace],
        }
        return self.server.client.open(path, method=method, headers=headers, **rest)

    def may(self, asker: str, workspace: str, *roles: str) -> bool:
        return asker == HOME or self.roles[asker].get(workspace) in (roles or ROLES)

    def write(self, draft: Draft) -> None:
        kind, name = draft.scope
        word = f"zq{self.number:03d}x{len(self.memories):03d}"
        body = {
            "content": f"The billing service listens on its port {word}",
            "kind": draft.kind,
            "scope": {"kind": kind} if name is None else {"kind": kind, "id": name},
            **({} if draft.session is None else {"session_id": draft.session}),
        }
        answer = self.call(draft.writer, draft.workspace, "POST", "/v1/memories", json=body)
        if self.may(draft.writer, draft.workspace, "writer", "owner"):
            assert answer.status_code == 201, answer.get_data(as_text=True)
            written = answer.get_json()["id"]
            self.memories.append(Written(written, word, draft.writer, draft.workspace, draft.scope, draft.kind))
        else:
            assert answer.status_code == (403 if self.may(draft.writer, draft.workspace) else 404)

    def act(self, act: Act) -> None:
        memory = self.at(act.memory)
        if memory is None:
            return
        actor = act.actor or memory.writer
        method = "DELETE" if act.withdraws else "POST"
        path = f"/v1/memories/{memory.id}/share"
        status = self.call(actor, memory.workspace, method, path).status_code
        writes = self.may(actor, memory.workspace, "writer", "owner")
        is_own = memory.writer == actor and memory.scope[0] in ("user", "agent", "session")
        is_shared = memory.workspace in memory.shared_in
        if act.withdraws:
            fine = writes and is_shared and (is_own or self.may(actor, memory.workspace, "owner"))
        else:
            fine = writes and not is_shared and is_own
        assert (status == 200) == fine, (act, memory, status)
        if fine:
            (memory.shared_in.discard if act.withdraws else memory.shared_in.add)(memory.workspace)

    def at(self, place: int) -> Written | None:
        return self.memories[place % len(self.memories)] if self.memories else None

    def named_in(self, text: str) -> list[Written]:
        return [memory for memory in self.memories if memory.id[-8:] in text or memory.word in text]


@st.composite
def crowd_plans(draw, ways) -> CrowdPlan:
    roles = {name: draw(st.dictionaries(st.sampled_from(WORKSPACES), st.sampled_from(ROLES))) for name in PEOPLE}
    everybody, workspaces = st.sampled_from((*PEOPLE, HOME)), st.sampled_from(WORKSPACES)
    names, numbers = st.sampled_from("xy"), st.integers(0, 99)
    drafts = st.builds(Draft, everybody, workspaces, st.sampled_from(SCOPES), st.sampled_from(KINDS), st.none() | names)
    acts = st.builds(Act, st.none() | everybody, numbers, st.booleans())
    looks = st.builds(Look, everybody, workspaces, st.sampled_from(ways), names, names, names, numbers)
    return CrowdPlan(
        roles,
        draw(st.lists(drafts, min_size=14, max_size=24)),
        draw(st.lists(acts, min_size=6, max_size=16)),
        draw(st.lists(looks, min_size=80, max_size=80)),
    )
