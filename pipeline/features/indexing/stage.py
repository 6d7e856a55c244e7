"""The embed stage: store a vector for each passage of a memory in the index."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.features.indexing.screen_stage import must_screen
from pipeline.index.codes import Vector
from pipeline.index.encoder import Encoder
from pipeline.index.vectors import VectorTable
from pipeline.kernel.records import Memory, Stage
from pipeline.kernel.records.digestion import WorkItem
from pipeline.kernel.store import index_state, languages, memories, meta, work
from pipeline.kernel.store.database import Database
from pipeline.text.languages import is_foreign
from pipeline.text.memory_terms import embedded_text
from pipeline.text.similarity.statements import store_statements


@dataclass(frozen=True, slots=True)
class EmbedStage:
    """Embed the memories of a workspace into the table of the encoder's model.

    With `follows_languages`, the languages of the memories choose the model. With `screens`, texts that may come from
    outside are queued for the screen stage.
    """

    database: Database
    table: Callable[[Encoder], VectorTable]
    encoder: Callable[[], Encoder]
    follows_languages: bool = False
    screens: bool = False

    def load(self) -> None:
        """Load the encoder."""
        self.encoder()

    def run(self, items: Sequence[WorkItem], owner: str) -> None:
        """Encode the memories, then publish vectors and completion together."""
        with self.database.read() as db:
            batch = memories.by_seqs(db, [item.seq for item in items])
        encoder = self.encoder()
        self._publish(items, batch, embed(list(batch.values()), encoder), self.table(encoder), owner)
        shown = find_language_evidence(self.database, [memory.content for memory in batch.values()])
        if shown is not None:
            with self.database.write() as db:
                languages.record_other_languages(db, shown, embed_again=self.follows_languages)

    def _publish(
        self,
        items: Sequence[WorkItem],
        embedded: Mapping[int, Memory],
        vectors: dict[int, Vector],
        table: VectorTable,
        owner: str,
    ) -> None:
        stated = {seq: store_statements(memory.content) for seq, memory in embedded.items()}
        with table.exclusive():
            # An edit or a purge removes the item; checked under the lock, so that no vector outlives its memory.
            with self.database.read() as db:
                held = {item.seq for item in items if work.is_held(db, item, owner)}
                stamp = meta.get_int(db, meta.VECTORS_GENERATION) + 1
            pending = {seq: passages for seq, passages in vectors.items() if seq in held}
            if pending:
                table.replace(pending)
            with self.database.write() as db:
                done = [item.seq for item in work.complete(db, items, owner) if item.seq in pending]
                for seq in done:
                    index_state.note_embedding(db, seq, table.model, len(pending[seq]), stated[seq])
                index_state.serve_when_whole(db, table.model)
                work.add(db, done, [Stage.DEDUP], time.time())
                if self.screens:
                    work.add(db, [seq for seq in done if must_screen(embedded[seq])], [Stage.SCREEN], time.time())
                meta.put(db, meta.VECTORS_GENERATION, str(stamp))


def embed(batch: Sequence[Memory], encoder: Encoder) -> dict[int, Vector]:
    """Return the passage vectors (n × dimension) of each memory by row number."""
    passages = {memory.seq: encoder.passages(embedded_text(memory)) for memory in batch}
    return encode_passages({seq: [passage.text for passage in parts] for seq, parts in passages.items()}, encoder)


def encode_passages(passages: Mapping[int, Sequence[str]], encoder: Encoder) -> dict[int, Vector]:
    """Return the vectors (n × dimension) of the passages of each row number, of which each has some."""
    if not passages:
        return {}
    vectors = encoder.encode_documents([text for parts in passages.values() for text in parts])
    ends = np.cumsum([len(parts) for parts in passages.values()])
    return dict(zip(passages, np.split(vectors, ends[:-1]), strict=True))


def find_language_evidence(database: Database, written: Sequence[str]) -> str | None:
    """Return new evidence that a workspace is not only in English, from newly written memories."""
    if not any(map(is_foreign, written)):
        return None
    with database.read() as db:
        if languages.find_other_languages(db) is not None:
            return None
        last = memories.last_seq(db)
        newest = memories.by_seqs(db, range(last - languages.READ + 1, last + 1))
    foreign = sum(is_foreign(memory.content) for memory in newest.values())
    return f"{foreign} of {len(newest)} memories" if languages.is_multilingual_share(foreign, len(newest)) else None
