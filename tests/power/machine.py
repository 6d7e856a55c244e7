"""One model of everything that is promised: two data directories, what users and time do to them, and dictionaries.

Each rule does something to the real code and the same to the model (`tests/power/model.py`). After each, both agree.
"""

import random
from collections.abc import Callable
from copy import deepcopy
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pipeline.features.encryption import usecases as encryption
from pipeline.features.maintenance.registry import JOBS
from pipeline.features.snapshots import usecases as snapshots
from pipeline.kernel.store import backup, clock
from tests.fakes.homes import SHARED
from tests.fakes.in_process import scratch_folder
from tests.power.model import WORKSPACES, Known, Model
from tests.power.site import Site
from tests.support.sentences import make_sentence

FACTS = ("gateway/port", "ledger/region", "mailer/owner")
MOST_ROUNDS = 8

sites = st.sampled_from((0, 0, 1))
workspaces = st.sampled_from(("default", "default", "other"))
numbers = st.integers(0, 99)


class Machine(RuleBasedStateMachine):
    """Compare two data directories with a model, after each step of any sequence of operations."""

    # Return the databases of a server for the two stores; without a server, files.
    find_urls: ClassVar[Callable[[], tuple[str, str]]] = staticmethod(lambda: ("", ""))
    ran: ClassVar[dict[str, int]] = {}

    def __init__(self) -> None:
        super().__init__()
        self.scratch = scratch_folder()
        self.folder = self.scratch.__enter__()
        urls = type(self).find_urls()
        self.sites = [Site(self.folder / name, url) for name, url in zip(("one", "two"), urls, strict=True)]
        self.has_files = not urls[0]
        self.rng = random.Random(0)
        self.step = 0
        self.is_paired = False
        # What was ever sent to the folder that both share.
        self.sent = Model()
        # False within a rule, and after one that failed.
        self.is_sound = True
        self._count("examples")

    def _count(self, name: str) -> None:
        self.ran[name] = self.ran.get(name, 0) + 1

    def begin(self, rule_name: str) -> int:
        """Return the number of a new step, whose time is later than that of the one before."""
        self._count("steps")
        self._count(rule_name)
        self.is_sound = False
        self.step += 1
        before = clock.wall_ms()
        while clock.wall_ms() == before:
            pass
        return self.step

    def invent(self) -> tuple[str, str]:
        """Return a new word, and a text that contains it."""
        self._count("texts")
        word = f"zq{self.ran['texts']:05}xv{self.rng.randrange(36**4):x}k"
        return word, make_sentence(self.rng, word, 0.02)

    def choose(self, place: int, workspace: str, number: int, *, archived: bool | None = None) -> str | None:
        """Return the id of a memory, None if there is none."""
        known = self.sites[place].model.workspaces[workspace].memories
        ids = [memory_id for memory_id, one in known.items() if archived in (None, one.is_archived)]
        return ids[number % len(ids)] if ids else None

    # What a user does

    @initialize()
    def start(self) -> None:
        for place, workspace in ((0, "default"), (0, "other"), (1, "default")):
            self.remember(place, workspace, 4)
        self.agrees()

    @rule(place=sites, workspace=workspaces, count=st.sampled_from((1, 1, 3)))
    def remember(self, place: int, workspace: str, count: int) -> None:
        step, site = self.begin("batch" if count > 1 else "remember"), self.sites[place]
        texts = [self.invent() for _ in range(count)]
        if count == 1:
            receipts = [site.call("POST", "/v1/memories", {"content": texts[0][1]}, workspace=workspace)]
        else:
            items = [{"content": text} for _, text in texts]
            receipts = site.call("POST", "/v1/memories/batch", {"items": items}, workspace=workspace)["results"]
        for (word, text), receipt in zip(texts, receipts, strict=True):
            assert receipt["outcome"] == "created", receipt
            site.model.workspaces[workspace].memories[receipt["id"]] = Known({word: text}, step, step)

    @rule(place=sites, workspace=workspaces, number=numbers)
    def repeat(self, place: int, workspace: str, number: int) -> None:
        site, memory_id = self.sites[place], self.choose(place, workspace, number, archived=False)
        if memory_id is None:
            return
        self.begin("repeat")
        content = site.model.workspaces[workspace].memories[memory_id].content
        receipt = site.call("POST", "/v1/memories", {"content": content}, workspace=workspace)
        assert (receipt["outcome"], receipt["id"]) == ("merged", memory_id)

    @rule(place=sites, workspace=workspaces, number=numbers)
    def edit(self, place: int, workspace: str, number: int) -> None:
        site, memory_id = self.sites[place], self.choose(place, workspace, number, archived=False)
        if memory_id is None:
            return
        step, (word, text) = self.begin("edit"), self.invent()
        site.call("PATCH", f"/v1/memories/{memory_id}", {"content": text}, workspace=workspace)
        known = site.model.workspaces[workspace].memories[memory_id]
        known.texts[word], known.text_at = text, step

    @rule(place=sites, workspace=workspaces, key=st.sampled_from(FACTS))
    def set_fact(self, place: int, workspace: str, key: str) -> None:
        step, site = self.begin("set fact"), self.sites[place]
        value = f"v{step}q{self.rng.randrange(36**6):x}"
        site.call("PUT", f"/v1/facts/{key}", {"value": value}, workspace=workspace)
        site.model.workspaces[workspace].facts.setdefault(key, {})[step] = value

    @rule(place=sites, workspace=workspaces, number=numbers, restores=st.booleans())
    def forget_or_restore(self, place: int, workspace: str, number: int, restores: bool) -> None:
        site, memory_id = self.sites[place], self.choose(place, workspace, number, archived=restores)
        if memory_id is None:
            return
        step, path = self.begin("restore" if restores else "forget"), f"/v1/memories/{memory_id}"
        method, path = ("POST", f"{path}/restore") if restores else ("DELETE", path)
        site.call(method, path, workspace=workspace)
        known = site.model.workspaces[workspace].memories[memory_id]
        known.is_archived, known.state_at = not restores, step

    @rule(place=sites, workspace=workspaces, number=numbers)
    def purge(self, place: int, workspace: str, number: int) -> None:
        site, memory_id = self.sites[place], self.choose(place, workspace, number)
        if memory_id is None:
            return
        self.begin("purge")
        origin = site.model.workspaces[workspace].memories[memory_id].origin
        site.call("DELETE", f"/v1/memories/{memory_id}?hard=true", workspace=workspace)
        site.model.purge(origin)
        site.call("GET", f"/v1/memories/{memory_id}", workspace=workspace, status=404)

    @rule(place=sites, workspace=workspaces, number=numbers)
    def offer_purged(self, place: int, workspace: str, number: int) -> None:
        site = self.sites[place]
        texts = sorted(site.model.refused)
        if not texts:
            return
        self.begin("offer purged")
        body = {"content": texts[number % len(texts)], "source": "agent"}
        assert site.call("POST", "/v1/memories", body, workspace=workspace)["outcome"] == "rejected"

    @rule(place=sites, workspace=workspaces, number=numbers)
    def move(self, place: int, workspace: str, number: int) -> None:
        site, memory_id = self.sites[place], self.choose(place, workspace, number, archived=False)
        if memory_id is None:
            return
        step, target = self.begin("move"), next(name for name in WORKSPACES if name != workspace)
        known = site.model.workspaces[workspace].memories[memory_id]
        receipt = site.call("POST", f"/v1/memories/{memory_id}/move", {"workspace": target}, workspace=workspace)
        moved = deepcopy(known)
        moved.text_at = moved.state_at = step
        there = site.model.workspaces[target].memories
        assert (receipt["id"] in there) is (receipt["outcome"] == "merged"), receipt
        there.setdefault(receipt["id"], moved)
        known.is_archived, known.state_at = True, step

    # What time and commands do

    @rule(place=sites, how=st.sampled_from(("restart", "kill")))
    def stop(self, place: int, how: str) -> None:
        self.begin(how)
        site = self.sites[place]
        if how == "kill":
            site.kill()
        else:
            with site.stopped():
                pass
        site.check_words()

    @rule(place=sites)
    def digest(self, place: int) -> None:
        self.begin("digest")
        self.sites[place].digest()

    @rule(place=sites, workspace=workspaces, job=st.sampled_from([job.name for job in JOBS]))
    def run(self, place: int, workspace: str, job: str) -> None:
        site = self.sites[place]
        if workspace not in site.list_workspaces():
            return
        self.begin(f"job {job}")
        site.run(workspace, job)
        if job == "snapshot":
            # It keeps one snapshot of a day.
            self._drop_replaced(site, workspace)
        site.check_words()

    @precondition(lambda self: self.has_files)
    @rule(place=sites, workspace=workspaces)
    def take_snapshot(self, place: int, workspace: str) -> None:
        site = self.sites[place]
        if workspace not in site.list_workspaces():
            return
        self.begin("take snapshot")
        name = snapshots.take_snapshot(site.settings, workspace).name
        self._drop_replaced(site, workspace)
        site.model.snapshots[workspace, name] = deepcopy(site.model.workspaces[workspace])

    @staticmethod
    def _drop_replaced(site: Site, workspace: str) -> None:
        kept = {one.name for one in backup.snapshots(site.settings.paths.workspace(workspace).snapshots)}
        for key in [key for key in site.model.snapshots if key[0] == workspace and key[1] not in kept]:
            del site.model.snapshots[key]

    @precondition(lambda self: self.has_files)
    @rule(place=sites, number=numbers)
    def restore_snapshot(self, place: int, number: int) -> None:
        site = self.sites[place]
        names = list(site.model.snapshots)
        if not names:
            return
        self.begin("restore snapshot")
        workspace, name = names[number % len(names)]
        with site.stopped():
            aside = snapshots.restore_snapshot(site.settings, workspace, name, print).aside
        before = site.model.workspaces[workspace]
        site.model.workspaces[workspace] = deepcopy(site.model.snapshots[workspace, name])
        if aside is not None:
            site.model.snapshots[workspace, aside] = before
        # The first tick of the scheduler asks for them.
        for job in site.worker.context(workspace).list_needed_jobs():
            site.run(workspace, job)
        site.check_words()

    @precondition(lambda self: self.has_files)
    @rule(place=sites)
    def encrypt_or_decrypt(self, place: int) -> None:
        site = self.sites[place]
        self.begin("decrypt" if site.is_encrypted else "encrypt")
        with site.stopped():
            if site.is_encrypted:
                converted = encryption.decrypt_home(site.settings.paths)
            else:
                encryption.choose_key(site.settings.paths, self.folder / f"{place}.key")
                converted = encryption.encrypt_home(site.settings.paths)
        assert not converted.left
        site.is_encrypted = not site.is_encrypted
        site.check_words()

    @rule()
    def sync(self) -> None:
        self.begin("sync")
        if not self.is_paired:
            one, two = (site.web.sync for site in self.sites)
            two.join(one.invite())
            for service in (one, two):
                service.add(SHARED, f"dir:{self.folder / 'shared'}")
            self.is_paired = True
        assert any(not sum(site.exchange() for site in self.sites) for _ in range(MOST_ROUNDS)), "they never agree"
        for site in self.sites:
            self.sent.merge(site.model)
        for site in self.sites:
            site.model.merge(self.sent)
            site.check_words()

    @invariant()
    def agrees(self) -> None:
        """Compare the data directories with the model."""
        for site in self.sites:
            site.check()
            site.check_traces()
        self.is_sound = True

    def teardown(self) -> None:
        try:
            if self.is_sound:
                for site in self.sites:
                    site.check_words()
                    site.digest()
                    site.check()
                    site.check_words()
                    site.check_traces()
        finally:
            for site in self.sites:
                site.stop()
            self.scratch.__exit__(None, None, None)
