"""A data directory with its server and its worker in this process, compared with the model of it."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from config.declared import Secret
from pipeline.features.sync.exchange import Exchanged
from pipeline.kernel.store import backup
from tests.fakes.in_process import digest_all, dump, fast_settings, flush_notes, run_job
from tests.power.model import WORKSPACES, Model
from tests.power.processes import Processes
from tests.power.promises import find_traces, list_traceable


class Site(Processes):
    """A data directory, in files or with its store on a server, and the model of it."""

    def __init__(self, root: Path, url: str = "") -> None:
        self.root = root
        self.model = Model()
        # What was purged, and then erased by a worker, by first word.
        self.traceless: set[str] = set()
        self.is_encrypted = False
        super().__init__(fast_settings(root, **({"store": Secret(url)} if url else {})))

    def kill(self) -> None:
        """Leave the files as killed processes do: nothing is closed in order, and no log is emptied."""
        flush_notes(self.web)
        left = self.root.with_name(f"{self.root.name}-killed")
        shutil.copytree(self.root, left, ignore=shutil.ignore_patterns("*.sock"))
        self.stop()
        shutil.rmtree(self.root)
        left.rename(self.root)
        self.start()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop for a command that needs the files alone."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def list_workspaces(self) -> list[str]:
        """List the workspaces that exist."""
        return [name for name in WORKSPACES if self.web.databases.exists(name)]

    def list_memories(self, workspace: str, *, archived: bool = False) -> dict[str, str]:
        """Return the listed texts, except for facts, by id."""
        path = f"/v1/memories?limit=100&archived={str(archived).lower()}"
        items, cursor = list[dict[str, Any]](), ""
        while True:
            page = self.call("GET", f"{path}{cursor}", workspace=workspace)
            items += page["items"]
            if page["next_cursor"] is None:
                return {item["id"]: item["content"] for item in items if item["kind"] != "keyed_fact"}
            cursor = f"&cursor={page['next_cursor']}"

    def recall(self, workspace: str, words: str, k: int = 10) -> list[dict[str, Any]]:
        """Return what a recall finds."""
        answer = self.call("POST", "/v1/recall", {"query": words, "k": k}, workspace=workspace)
        assert answer["channels"]["lexical"]["state"] == "ok", answer["channels"]
        return list(answer["results"])

    # What workers do

    def digest(self) -> None:
        """Do everything that is due; afterwards, no file contains what was purged."""
        for _ in range(2):
            for name in self.web.databases.ids():
                digest_all(self.worker, name)
        self.traceless |= set(self.model.purged)
        self.model.refused |= self.model.refused_later

    def run(self, workspace: str, job: str) -> None:
        """Run a job."""
        outcome = run_job(self.worker, workspace, job)
        assert outcome is not None
        assert outcome.error is None, (job, outcome.error)

    def exchange(self) -> bool:
        """Exchange by the shared remote; return whether anything was new."""
        done = self.exchange_shared()
        assert isinstance(done, Exchanged), done
        assert not done.put_aside, done.put_aside
        assert not done.refused, done.refused
        return bool(done.applied or done.sent)

    # What is true at any time

    def check(self) -> None:
        """Compare lists, current values, counts and snapshots with the model."""
        for name in self.list_workspaces():
            space = self.model.workspaces[name]
            assert self.list_memories(name) == space.list_contents(archived=False), name
            archived = space.list_contents(archived=True)
            assert self.list_memories(name, archived=True) == archived, name
            listed = self.call("GET", "/v1/facts?limit=100", workspace=name)["items"]
            current = {f"{one['subject']}/{one['attribute']}": one["value"] for one in listed if not one["valid_to"]}
            assert current == {key: values[max(values)] for key, values in space.facts.items()}, name
            counts = self.call("GET", "/v1/stats", workspace=name)["memories"]
            expected = len(space.memories) - len(archived) + sum(map(len, space.facts.values()))
            assert (counts["active"], counts["archived"]) == (expected, len(archived)), (name, counts)
            kept = {one.name for one in backup.snapshots(self.settings.paths.workspace(name).snapshots)}
            assert {snapshot for workspace, snapshot in self.model.snapshots if workspace == name} <= kept
        absent = [name for name in WORKSPACES if name not in self.list_workspaces()]
        assert not any(self.model.workspaces[name].memories for name in absent)

    def check_words(self) -> None:
        """Require that recall finds what is active by its words, nothing else, and that facts have their history."""
        purged = {word for texts in self.model.purged.values() for word in texts}
        for name in self.list_workspaces():
            space = self.model.workspaces[name]
            for memory_id, one in space.memories.items():
                found = {hit["id"] for hit in self.recall(name, one.word)}
                assert (memory_id in found) is not one.is_archived, (name, memory_id, one)
            shown = str([hit["content"] for hit in self.recall(name, " ".join(sorted(purged)) or "port", 50)])
            assert not [word for word in purged if word in shown]
            for key, values in space.facts.items():
                history = self.call("GET", f"/v1/facts/{key}/history", workspace=name)["items"]
                assert [one["value"] for one in history] == list(values.values()), key

    def check_traces(self) -> None:
        """Require that no file contains a purged text, and that nothing is readable in an encrypted directory."""
        erased = {word: text for origin in self.traceless for word, text in self.model.purged[origin].items()}
        assert find_traces(self.root, list_traceable(erased)) == []
        if self.settings.store.reveal():
            for name in self.list_workspaces():
                with self.worker.databases.get(name).read() as db:
                    rows = "\n".join(dump(db))
                assert not [word for word in erased if word in rows]
        if self.is_encrypted:
            assert find_traces(self.root, {word.encode(): word for word in self.model.list_texts()}) == []
