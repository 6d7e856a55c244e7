"""The peer's end of `make bench-peer`: runs in the peer's own environment, told what to do in JSON lines.

`peer_driver.py` reads commands on standard input and answers each with one line on standard output;
`peer_driver.py serve PORT` runs the peer's daemon. PMB_HOME and PMB_WORKSPACE say where its data is.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

# The vectors that its queue still has to write may take a while on a slow machine.
EMBEDDED_WITHIN_S = 3600.0


class Peer:
    """One workspace of the peer, its model warm."""

    def __init__(self, home: str, workspace: str, model: str) -> None:
        from pmb.core.engine import Engine  # type: ignore[import-not-found]
        from pmb.core.workspace import detect_workspace  # type: ignore[import-not-found]

        place = detect_workspace(pmb_home=Path(home), explicit_id=workspace)
        # Kept in its own settings too, so that its daemon takes the same model.
        Engine(place).config.set_global("embedding.model", model)
        self.engine = Engine(place)
        self.engine.warmup()

    def write(self, items: list[dict[str, Any]]) -> dict[str, Any]:
        """Store memories by the peer's bulk path, which embeds in batches and leaves the graph to `finish`."""
        facts = [{"type": "fact", "content": item["content"], "metadata": item["metadata"]} for item in items]
        report = self.engine.record_batch_bulk(facts)
        if report["n_failed"]:
            raise RuntimeError(f"the peer refused {report['n_failed']} memories: {report['errors'][:2]}")
        return {"ids": [result["ulid"] for result in report["results"]]}

    def finish(self) -> dict[str, Any]:
        """Wait for its vectors, build its graph, as its documents say of the bulk path."""
        self.engine.wait_for_embed_queue(EMBEDDED_WITHIN_S)
        self.engine.regraph()
        return {"vectors": self.engine.search._table.count_rows()}  # there is no public count

    def recall(self, queries: list[str], k: int) -> dict[str, Any]:
        """Ask questions one after the other."""
        ids, milliseconds = [], []
        for query in queries:
            began = time.perf_counter()
            pack = self.engine.recall(query, top_k=k)
            milliseconds.append((time.perf_counter() - began) * 1000)
            ids.append([result.ulid for result in pack.results])
        return {"ids": ids, "ms": milliseconds}

    def threads(self, count: int) -> dict[str, Any]:
        """Set how many threads its encoder uses."""
        import torch

        torch.set_num_threads(count)
        return {}

    def close(self) -> dict[str, Any]:
        """Let go of the workspace."""
        self.engine.close()
        return {}


def obey() -> None:
    """Carry out commands until the input ends."""
    # Whatever the peer prints must not get among the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    peer: Peer | None = None
    for line in sys.stdin:
        command = json.loads(line)
        name = command.pop("do")
        if name == "open":
            peer = Peer(**command)
            answer: dict[str, Any] = {}
        else:
            answer = getattr(peer, name)(**command)
        print(json.dumps(answer), file=answers, flush=True)


def serve(port: int) -> int:
    """Run the peer's daemon in the foreground."""
    from pmb.mcp.daemon import run_daemon  # type: ignore[import-not-found]

    return int(run_daemon(port=port, idle_exit_min=0))


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        sys.exit(serve(int(sys.argv[2])))
    obey()
    sys.stderr.flush()
    # Its threads outlive the input; everything is on disk by now.
    os._exit(0)
