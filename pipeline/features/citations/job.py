"""The check job: compare what memories cite with this machine's checkout, and keep what is wrong for recall."""

from pathlib import Path

from pipeline.features.citations import store as broken_citations
from pipeline.features.citations.parser import find_citations
from pipeline.features.citations.resolve import resolve_citations
from pipeline.kernel.errors import InvalidField
from pipeline.kernel.job_runs import JobRun, Report
from pipeline.kernel.kinds import STATES_PRESENT
from pipeline.kernel.records import Memory
from pipeline.kernel.store import memories, meta

PAGE = 500
# Newest first; older memories are not checked.
MOST_MEMORIES = 20_000


def check(run: JobRun) -> Report:
    """Check the memories that state the present; do nothing without a checkout."""
    with run.database.read() as db:
        checkout = meta.get(db, meta.CHECKOUT)
        before = broken_citations.read_all(db)
    if checkout is None or not (Path(checkout) / ".git").exists():
        return run.report(more=False)
    cited = [(memory, citations) for memory in _list_stating(run) if (citations := find_citations(memory.content))]
    try:
        found = resolve_citations(Path(checkout), [citations for _, citations in cited]) if cited else []
    except InvalidField:
        # Git is missing or rejects the folder: what is known stays.
        run.counts["skipped"] += len(cited)
        return run.report(more=False)
    broken = {
        memory.id: broken_citations.BrokenText(
            broken_citations.text_mark(memory.content), tuple(item.describe() for item in findings if item.is_broken)
        )
        for (memory, _), findings in zip(cited, found, strict=True)
        if any(item.is_broken for item in findings)
    }
    run.counts.update(memories=len(cited), broken=len(broken))
    if broken != before:
        with run.database.write() as db:
            broken_citations.replace_all(db, broken)
    return run.report(more=False)


def _list_stating(run: JobRun) -> list[Memory]:
    stating: list[Memory] = []
    after = 0
    while True:
        with run.database.read() as db:
            page = memories.list_searchable(db, after, PAGE)
        stating += [memory for memory in page if memory.kind in STATES_PRESENT]
        if len(page) < PAGE:
            return stating[-MOST_MEMORIES:]
        after = page[-1].seq
