"""Records of digestion: a pending work item, passages of a memory, and entity mentions."""

from dataclasses import dataclass

from pipeline.kernel.records import EntityKind, Stage

# The stages that read the text of a memory.
DIGESTION = (Stage.EMBED, Stage.ENTITIES)
# The stages that read a message of a person: a prompt of another session may need it at once.
READING = (Stage.CAPTURE, Stage.EMBED_TURNS)


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A memory that is pending for a stage, claimed under a lease."""

    seq: int
    stage: Stage
    attempts: int


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a memory's text that fits the encoder's window: character offsets."""

    number: int
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class EntityMention:
    """An entity found in a text: character offsets, canonical and surface form."""

    kind: EntityKind
    name: str
    surface: str
    start: int
    end: int
