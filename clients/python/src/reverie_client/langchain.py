"""Reverie for LangChain: a retriever, and a chat history that all processes of a session share."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langchain_core.retrievers import BaseRetriever
from pydantic import Field

from .answers import Hit, Memory, Scope
from .calls import NewMemory, RecallFields
from .client import AsyncReverie, Reverie
from .errors import NotFound

# Maximum size of a memory, and of a batch.
LONGEST_CONTENT = 10_000
LARGEST_BATCH = 1000
LONGEST_QUERY = 4000
MESSAGE = "langchain_message"
POSITION = "position"


class ReverieRetriever(BaseRetriever):
    """Search memories as documents, best first. The default client uses the data directory's server."""

    client: Reverie = Field(default_factory=Reverie)
    # Without an async client, async calls use the sync client in a thread.
    async_client: AsyncReverie | None = None
    # Parameters of the recall: k, kinds, since, min_relevance …
    search_kwargs: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        del run_manager
        try:
            answer = self.client.recall(query[:LONGEST_QUERY], **self._fields())
        except NotFound:
            # The workspace has no memories yet.
            return []
        return [_build_document(hit) for hit in answer.results]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        if self.async_client is None:
            return await super()._aget_relevant_documents(query, run_manager=run_manager)
        try:
            answer = await self.async_client.recall(query[:LONGEST_QUERY], **self._fields())
        except NotFound:
            return []
        return [_build_document(hit) for hit in answer.results]

    def _fields(self) -> RecallFields:
        return cast("RecallFields", self.search_kwargs)


class ReverieChatMessageHistory(BaseChatMessageHistory):
    """Store a session's messages as memories that only the session can see."""

    def __init__(self, session_id: str, client: Reverie | None = None) -> None:
        self.session_id = session_id
        self._client = client or Reverie()
        self._scope = Scope(kind="session", id=session_id)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """Return the messages in the order in which they were added."""
        return messages_from_dict([json.loads(memory.metadata[MESSAGE]) for memory in self._list_memories()])

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages durably; a message may have up to 16 KiB."""
        start = max((memory.metadata[POSITION] for memory in self._list_memories()), default=0) + 1
        drafts = [self._build_memory(number, message) for number, message in enumerate(messages, start)]
        for first in range(0, len(drafts), LARGEST_BATCH):
            self._client.remember_all(drafts[first : first + LARGEST_BATCH])

    def clear(self) -> None:
        """Remove every trace of the session's messages."""
        for memory in self._list_memories():
            self._client.purge(memory.id)

    def _list_memories(self) -> list[Memory]:
        # Old or merged memories are archived, but they are still messages.
        try:
            memories = [memory for archived in (False, True) for memory in self._iterate(archived=archived)]
        except NotFound:
            # The workspace has no memories yet.
            return []
        return sorted(memories, key=lambda memory: (memory.metadata[POSITION], memory.id))

    def _iterate(self, *, archived: bool) -> Iterator[Memory]:
        listed = self._client.memories(scope=self._scope, kind="episode", archived=archived)
        return (memory for memory in listed if MESSAGE in memory.metadata)

    def _build_memory(self, number: int, message: BaseMessage) -> NewMemory:
        # Numbered, because two equal messages would become one memory.
        content = f"{message.type} ({number}): {message.text}"[:LONGEST_CONTENT]
        # As one text, because the server normalizes texts in metadata and strips spaces.
        metadata: dict[str, Any] = {MESSAGE: json.dumps(message_to_dict(message)), POSITION: number}
        # Evidence only: messages of a chat are not rules for an agent.
        return {
            "content": content,
            "kind": "episode",
            "scope": self._scope,
            "session_id": self.session_id,
            "source": "import",
            "metadata": metadata,
        }


def _build_document(hit: Hit) -> Document:
    metadata = {
        "kind": hit.kind,
        "score": hit.score,
        "relevance": hit.relevance,
        "occurred_at": hit.occurred_at.isoformat(),
        "session_id": hit.session_id,
        "source": hit.source,
        "trust": hit.trust,
    }
    return Document(id=hit.id, page_content=hit.content, metadata=metadata)
