"""The peers' end of `make bench-peer`: runs in a peer's own environment and reads commands as JSON lines.

Each class drives one memory by its own interface, in its process, with the model warm. `write` returns an id for each
memory, `recall` the ids that were found for a question.
"""

import asyncio
import json
import os
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

# The vectors that a queue still has to write may take a while on a slow machine.
EMBEDDED_WITHIN_S = 3600.0
MAX_TOKENS = 256


class Pmb:
    """PMB, with its bulk path, which embeds in batches and leaves the graph to `finish`."""

    def __init__(self, home: Path, model: str) -> None:
        from pmb.core.engine import Engine  # type: ignore[import-not-found]
        from pmb.core.workspace import detect_workspace  # type: ignore[import-not-found]

        place = detect_workspace(pmb_home=home, explicit_id="default")
        Engine(place).config.set_global("embedding.model", model)
        self._engine = Engine(place)
        self._engine.warmup()

    def write(self, items: list[dict[str, Any]]) -> list[str]:
        facts = [{"type": "fact", "content": item["content"], "metadata": item["metadata"]} for item in items]
        return [result["ulid"] for result in self._engine.record_batch_bulk(facts)["results"]]

    def finish(self) -> None:
        self._engine.wait_for_embed_queue(EMBEDDED_WITHIN_S)
        self._engine.regraph()

    def recall(self, query: str, k: int) -> list[str]:
        return [result.ulid for result in self._engine.recall(query, top_k=k).results]


class MemPalace:
    """MemPalace: a palace of one wing. Its model is on a server, so the same weights are exported."""

    def __init__(self, home: Path, model: str) -> None:
        from chromadb.utils.embedding_functions import ONNXMiniLM_L6_V2  # type: ignore[import-not-found]
        from mempalace.palace import get_collection  # type: ignore[import-not-found]

        ONNXMiniLM_L6_V2.DOWNLOAD_PATH = home / "model"
        _export(model, home / "model" / "onnx")
        self._palace = str(home / "palace")
        self._collection = get_collection(self._palace)

    def write(self, items: list[dict[str, Any]]) -> list[str]:
        first = self._collection.count()
        ids = [f"note-{first + number}" for number in range(len(items))]
        places = [{"wing": "bench", "room": "notes", "source_file": note, "chunk_index": 0} for note in ids]
        self._collection.upsert(documents=[item["content"] for item in items], ids=ids, metadatas=places)
        return ids

    def finish(self) -> None:
        """Do nothing: vectors are written at once."""

    def recall(self, query: str, k: int) -> list[str]:
        from mempalace.searcher import search_memories  # type: ignore[import-not-found]

        return [hit["drawer_id"] for hit in search_memories(query, self._palace, n_results=k)["results"]]


class McpMemoryService:
    """mcp-memory-service on its default storage, with sentence-transformers."""

    def __init__(self, home: Path, model: str) -> None:
        os.environ["MCP_MEMORY_USE_ONNX"] = "0"
        from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage  # type: ignore[import-not-found]

        self._run = asyncio.Runner().run
        self._storage = SqliteVecMemoryStorage(str(home / "memories.db"), embedding_model=model)
        self._run(self._storage.initialize())

    def write(self, items: list[dict[str, Any]]) -> list[str]:
        from mcp_memory_service.models.memory import Memory  # type: ignore[import-not-found]
        from mcp_memory_service.utils.hashing import generate_content_hash  # type: ignore[import-not-found]

        ids = [generate_content_hash(item["content"]) for item in items]
        stored = [
            Memory(item["content"], note, created_at=item["metadata"]["event_time"])
            for item, note in zip(items, ids, strict=True)
        ]
        self._run(self._storage.store_batch(stored))
        return ids

    def finish(self) -> None:
        """Do nothing: vectors are written at once."""

    def recall(self, query: str, k: int) -> list[str]:
        return [result.memory.content_hash for result in self._run(self._storage.retrieve(query, k))]


class Mem0:
    """Mem0 with local parts: sentence-transformers and FAISS. Without inference, no language model is called."""

    def __init__(self, home: Path, model: str) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(home)}
        from mem0 import Memory  # type: ignore[import-not-found]

        place = {"path": str(home / "faiss"), "embedding_model_dims": 384, "distance_strategy": "cosine"}
        parts = {
            "embedder": {"provider": "huggingface", "config": {"model": model}},
            "vector_store": {"provider": "faiss", "config": place},
            "llm": {"provider": "openai", "config": {"api_key": "none"}},
        }
        self._memory = Memory.from_config({**parts, "history_db_path": str(home / "history.db")})

    def write(self, items: list[dict[str, Any]]) -> list[str]:
        added = [self._memory.add(item["content"], user_id="bench", infer=False) for item in items]
        return [answer["results"][0]["id"] for answer in added]

    def finish(self) -> None:
        """Do nothing: vectors are written at once."""

    def recall(self, query: str, k: int) -> list[str]:
        found = self._memory.search(query, top_k=k, filters={"user_id": "bench"}, threshold=0.0)
        return [result["id"] for result in found["results"]]


PEERS = {"pmb-ai": Pmb, "mempalace": MemPalace, "mcp-memory-service": McpMemoryService, "mem0ai": Mem0}


def _export(model: str, folder: Path) -> None:
    """Write the weights of a model in the form of Chroma's archive."""
    if (folder / "model.onnx").exists():
        return
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder.mkdir(parents=True)
    tokenizer, encoder = AutoTokenizer.from_pretrained(model), AutoModel.from_pretrained(model)
    tokenizer.save_pretrained(folder)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    inputs = tokenizer(["a short text", "one more of the texts"], padding=True, return_tensors="pt")

    class States(torch.nn.Module):  # type: ignore[misc]  # mypy does not read torch
        def forward(self, *values: Any) -> Any:
            return encoder(**dict(zip(names, values, strict=True))).last_hidden_state

    torch.onnx.export(
        States().eval(),
        tuple(inputs[name] for name in names),
        str(folder / "model.onnx"),
        input_names=names,
        output_names=["last_hidden_state"],
        dynamic_axes={name: {0: "batch", 1: "sequence"} for name in [*names, "last_hidden_state"]},
        dynamo=False,
    )
    for name in ("config.json", "special_tokens_map.json", "vocab.txt"):
        source = Path(model) / name
        (folder / name).write_bytes(source.read_bytes())


def measure_installation(package: str) -> int:
    """Return the bytes of the files of a package and of all that it requires."""
    from packaging.requirements import Requirement

    total, seen, waiting = 0, set(), [package]
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in seen:
            continue
        seen.add(name)
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        files = [Path(str(file.locate())) for file in found.files or ()]
        total += sum(file.stat().st_size for file in files if file.is_file())
        needs = [Requirement(line) for line in found.requires or ()]
        waiting += [need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return total


def obey(package: str, home: Path, model: str) -> None:
    """Carry out commands until the input ends."""
    # Whatever the peer prints must not get among the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    peer = PEERS[package](home, model)
    for line in sys.stdin:
        command = json.loads(line)
        answer: Any = None
        if command["do"] == "write":
            answer = peer.write(command["items"])
        elif command["do"] == "finish":
            peer.finish()
        elif command["do"] == "size":
            answer = sum(measure_installation(name) for name in command["packages"])
        else:
            answer = []
            for query in command["queries"]:
                began = time.perf_counter()
                ids = peer.recall(query, command["k"])
                answer.append((ids, (time.perf_counter() - began) * 1000))
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    obey(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
    sys.stderr.flush()
    # Its threads outlive the input; everything is on disk by now.
    os._exit(0)
