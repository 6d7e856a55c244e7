"""Reverie for LlamaIndex: a memory block that retrieves memories about a message, and stores older messages."""

from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemoryBlock
from pydantic import Field

from .calls import NewMemory
from .client import AsyncReverie
from .errors import NotFound

# Maximum size of a memory, of a batch and of a query.
LONGEST_CONTENT = 10_000
LARGEST_BATCH = 1000
LONGEST_QUESTION = 4000


class ReverieMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory of the workspace. The default client uses the data directory's server."""

    name: str = "reverie"
    client: AsyncReverie = Field(default_factory=AsyncReverie)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        asked = [message.content for message in messages or () if message.role == MessageRole.USER and message.content]
        if not asked:
            return ""
        session = block_kwargs.get("session_id")
        try:
            briefing = await self.client.prepare(asked[-1][:LONGEST_QUESTION], session_id=session)
        except NotFound:
            # The workspace has no memories yet.
            return ""
        return briefing.text

    async def _aput(self, messages: list[ChatMessage]) -> None:
        drafts = [_build_memory(message) for message in messages if message.content]
        for first in range(0, len(drafts), LARGEST_BATCH):
            await self.client.remember_all(drafts[first : first + LARGEST_BATCH])


def _build_memory(message: ChatMessage) -> NewMemory:
    content = f"{message.role.value}: {message.content}"[:LONGEST_CONTENT]
    # Evidence only: messages of a chat are not rules for an agent.
    memory: NewMemory = {"content": content, "kind": "episode", "source": "import"}
    session_id = message.additional_kwargs.get("session_id")
    return memory if session_id is None else {**memory, "session_id": str(session_id)}
