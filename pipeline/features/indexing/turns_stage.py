"""The stage that embeds turns: what a person said, and the conclusions that come from a turn, under its row number.

The agent's messages are found by their words: they repeat, explain and list, and are most of the text of a session.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from pipeline.features.indexing.stage import encode_passages
from pipeline.index.codes import Vector
from pipeline.index.encoder import Encoder
from pipeline.index.vectors import VectorTable
from pipeline.kernel.records.digestion import WorkItem
from pipeline.kernel.store import meta, turns, work
from pipeline.kernel.store.database import Database

# The rest of a long message is mostly a pasted text.
MOST_PASSAGES = 6


@dataclass(frozen=True, slots=True)
class EmbedTurnsStage:
    """Embed turns of a workspace into the table of the encoder's model."""

    database: Database
    table: Callable[[Encoder], VectorTable]
    encoder: Callable[[], Encoder]

    def load(self) -> None:
        """Load the encoder."""
        self.encoder()

    def run(self, items: Sequence[WorkItem], owner: str) -> None:
        """Encode the turns, then publish vectors and completion together."""
        with self.database.read() as db:
            texts = turns.list_embedded_texts(db, [item.seq for item in items])
        encoder = self.encoder()
        self._publish(items, embed(texts, encoder), self.table(encoder), owner)

    def _publish(
        self, items: Sequence[WorkItem], vectors: Mapping[int, Vector], table: VectorTable, owner: str
    ) -> None:
        with table.exclusive():
            # A purge deletes the turn; checked under the lock, so that no vector outlives its turn.
            with self.database.read() as db:
                held = {item.seq for item in items if work.is_held(db, item, owner)}
                existing = turns.list_embedded_texts(db, sorted(held))
            pending = {seq: passages for seq, passages in vectors.items() if seq in existing}
            emptied = sorted(held - existing.keys())
            if emptied and table.exists():
                table.remove(emptied)
            if pending:
                table.replace(pending)
            with self.database.write() as db:
                work.complete(db, items, owner)
                note_vectors(db, table.model, removed=bool(emptied))


def note_vectors(db: Connection, model: str, *, removed: bool) -> None:
    """Record that the vectors of turns changed."""
    meta.note(db, meta.TURN_VECTORS_MODEL, model)
    meta.increment(db, meta.TURN_VECTORS_EPOCH if removed else meta.TURN_VECTORS_GENERATION)


def embed(texts: Mapping[int, Iterable[str]], encoder: Encoder) -> dict[int, Vector]:
    """Return the passage vectors (n × dimension) of each turn by row number."""
    passages = {
        seq: [passage.text for text in parts for passage in encoder.passages(text)][:MOST_PASSAGES]
        for seq, parts in texts.items()
    }
    return encode_passages({seq: parts for seq, parts in passages.items() if parts}, encoder)
