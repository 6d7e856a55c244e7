"""Random workspaces whose memories have random scopes, who looks into them, and who may see what.

What a viewer may see is decided here once more, in a few lines, apart from the rule of the store. Every memory holds a
word that no other holds, so that a trace of it is found wherever it stands.
"""

from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import strategies as st

from config.workspace_configs import save_workspace_setting
from pipeline.kernel.records import EdgeKind, Stage
from pipeline.kernel.store import duplicates, edges, memories
from pipeline.text.normalize import normalize_id
from tests.fakes.client import HOST
from tests.fakes.in_process import digest_stage, fast_settings, open_web, open_worker
from web.http.app import create_app

CHECKS = 50
AT = "2026-01-01T00:00:00.000Z"
OWNED = ("user", "agent", "session", "task")
NARROW = ("not at all", "kinds", "session", "scope", "nothing asked")
KINDS = ("fact", "decision", "lesson", "goal", "activity", "milestone")
# Names that are told apart only by case, by a sign of SQL, or by what the scope's own text looks like.
NAMES = ("x", "X", "xx", "%", "_", "x' OR 'a'='a", '"x"', "agent:x", "x:y", "null", "workspace", "*", "ß", "工程", "🦊")

Scope = tuple[str, str | None]
Viewer = dict[str, str]


def reaches(scope: Scope, viewer: Viewer) -> bool:
    kind, owner = scope
    if kind == "workspace" or (kind == "user" and owner is None):
        return True
    return owner is not None and viewer.get(kind) == owner


def at_home_in(scope: Scope) -> Viewer:
    kind, owner = scope
    return {} if owner is None else {kind: owner}


def body_of(scope: Scope) -> dict[str, str]:
    kind, owner = scope
    return {"kind": kind} if owner is None else {"kind": kind, "id": owner}


def text_of(scope: Scope) -> str:
    kind, owner = scope
    return kind if owner is None else f"{kind}:{owner}"


@dataclass(frozen=True)
class Draft:
    scope: Scope
    session: str | None
    kind: str
    topic: str


@dataclass(frozen=True)
class Check:
    operation: str
    viewer: Viewer
    scope: Scope
    session: str | None
    kind: str
    topic: str
    k: int
    flag: bool
    narrow: str
    one: int
    other: int


@dataclass(frozen=True)
class Plan:
    drafts: list[Draft]
    facts: list[Scope]
    joined: list[tuple[int, int]]
    folded: bool
    checks: list[Check]


@dataclass(frozen=True)
class ScopedMemory:
    """A memory as the test knows it; `word` stands in no other memory."""

    id: str
    word: str
    scope: Scope
    session: str | None
    kind: str
    topic: str


class ScopesServer:
    """One server; each example has a workspace of its own in it."""

    def __init__(self, folder):
        self.container = open_web(fast_settings(folder / "home"))
        self.worker = open_worker(fast_settings(folder / "home"))
        self.client = create_app(self.container).test_client()
        self.numbers = count()

    def open(self, plan: Plan) -> "Workspace":
        workspace = self.make()
        workspace.fill(plan)
        return workspace

    def make(self) -> "Workspace":
        """Return a new workspace; what is about the person stays in it, so that all that an example holds is here."""
        workspace = Workspace(self, f"w{next(self.numbers)}")
        save_workspace_setting(self.container.stores.configs, workspace.name, "personal", False)
        return workspace

    def close(self):
        self.container.close()
        self.worker.close()


class Workspace:
    def __init__(self, server: ScopesServer, name: str) -> None:
        self.server, self.name = server, name
        self.memories: list[ScopedMemory] = []
        self.paired: set[tuple[str, str]] = set()

    def call(self, method: str, path: str, **rest: Any) -> Any:
        auth = {
            "Authorization": f"Bearer {self.server.container.token}",
            "Host": HOST,
            "X-Reverie-Workspace": self.name,
        }
        return self.server.client.open(path, method=method, headers=auth, **rest)

    def write(self, drafts: list[Draft]) -> None:
        words = [f"zq{number:03d}" for number in range(len(drafts))]
        items = [
            {
                "content": f"The {draft.topic} service listens on its port {word}",
                "kind": draft.kind,
                "scope": body_of(draft.scope),
                **({} if draft.session is None else {"session_id": draft.session}),
            }
            for draft, word in zip(drafts, words, strict=True)
        ]
        results = self.call("POST", "/v1/memories/batch", json={"items": items}).get_json()["results"]
        assert {result["outcome"] for result in results} <= {"created"}
        self.memories += [
            ScopedMemory(result["id"], word, draft.scope, draft.session, draft.kind, draft.topic)
            for result, word, draft in zip(results, words, drafts, strict=True)
        ]

    def fill(self, plan: Plan) -> None:
        self.write(plan.drafts)
        for number, scope in enumerate(plan.facts):
            value = f"zqf{number:02d}"
            body = {"value": value, "scope": body_of(scope)}
            answer = self.call("PUT", "/v1/facts/billing service/port", json=body).get_json()
            assert answer["outcome"] == "created"
            self.memories.append(ScopedMemory(answer["id"], value, scope, None, "keyed_fact", "billing"))
        self.join(plan.joined)
        worker, errors = self.server.worker, list[str]()
        digest_stage(worker, Stage.EMBED, worker.stages(self.name)[Stage.EMBED], errors.append, self.name)
        assert errors == []
        if plan.folded:
            worker.context(self.name).rebuild_segment()

    def join(self, places: list[tuple[int, int]]) -> None:
        """Let memories deny each other, even where the API would not, and let those of one scope wait as a pair."""
        with self.server.container.databases.get(self.name).write() as db:
            seqs = {memory.id: memories.get(db, memory.id).seq for memory in self.memories}
            for one, other in ((self.at(first), self.at(second)) for first, second in places):
                if one != other:
                    edges.add(db, seqs[one.id], EdgeKind.CONTRADICTS, seqs[other.id], "test", AT)
                if one.scope == other.scope and seqs[one.id] < seqs[other.id]:
                    duplicates.add(db, seqs[one.id], seqs[other.id], 0.85, (), AT)
                    self.paired.add((one.id, other.id))

    def at(self, place: int) -> ScopedMemory:
        return self.memories[place % len(self.memories)]

    def visible(self, viewer: Viewer) -> set[str]:
        return {memory.id for memory in self.memories if reaches(memory.scope, viewer)}

    def of_kind(self, kind: str, ids: set[str]) -> set[str]:
        return {memory.id for memory in self.memories if memory.kind == kind and memory.id in ids}

    def named_in(self, text: str) -> set[str]:
        return {memory.id for memory in self.memories if memory.id[-8:] in text or memory.word in text}


@st.composite
def plans(draw, operations) -> Plan:
    odd = st.text(min_size=1, max_size=4).filter(lambda text: normalize_id(text) == text and "\n" not in text)
    names = st.sampled_from(NAMES) | odd
    # Few, so that the same name belongs to a user, an agent, a session and a task.
    owners = st.sampled_from(draw(st.lists(names, min_size=2, max_size=3, unique=True)))
    scopes = st.just(("workspace", None)) | st.just(("user", None)) | st.tuples(st.sampled_from(OWNED), owners)
    viewers = st.fixed_dictionaries({}, optional=dict.fromkeys(OWNED, owners))
    sessions = st.none() | owners
    kinds, topics = st.sampled_from(KINDS), st.sampled_from(("billing", "ledger", "parcel"))
    places = st.integers(0, 99)
    drafts = st.builds(Draft, scopes, sessions, kinds, topics)
    narrow, k = st.sampled_from(NARROW), st.sampled_from((100, 100, 3, 10))
    checks = st.builds(
        Check,
        st.sampled_from(operations),
        viewers,
        scopes,
        sessions,
        kinds,
        topics,
        k,
        st.booleans(),
        narrow,
        places,
        places,
    )
    return Plan(
        draw(st.lists(drafts, min_size=28, max_size=40)),
        draw(st.lists(scopes, min_size=2, max_size=6, unique=True)),
        draw(st.lists(st.tuples(places, places), min_size=8, max_size=16)),
        draw(st.booleans()),
        draw(st.lists(checks, min_size=CHECKS, max_size=CHECKS)),
    )
