"""The memory block with the real llama-index-core, against a real stack."""

import asyncio

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from reverie_client import AsyncReverie
from reverie_client.llamaindex import ReverieMemoryBlock

pytestmark = pytest.mark.usefixtures("workspace")


def test_memory_block_returns_memories_relevant_to_the_message():
    async def converse():
        async with AsyncReverie() as client:
            await client.remember("Staging runs PostgreSQL on port 5433", kind="decision")
            memory = Memory.from_defaults(session_id="s1", memory_blocks=[ReverieMemoryBlock(client=client)])
            await memory.aput(ChatMessage(role="user", content="Which port does staging run PostgreSQL on?"))
            return await memory.aget()

    assert any("5433" in str(message.content) for message in asyncio.run(converse()))


def test_flushed_chat_messages_are_stored_as_evidence():
    async def converse():
        async with AsyncReverie() as client:
            block = ReverieMemoryBlock(client=client)
            memory = Memory.from_defaults(
                session_id="s1",
                memory_blocks=[block],
                token_limit=60,
                token_flush_size=20,
                chat_history_token_ratio=0.5,
            )
            for number in range(12):
                await memory.aput(
                    ChatMessage(role="user", content=f"The lamp of lock {number} shines in colour {number}")
                )
            return [item async for item in client.memories(session_id="s1")]

    kept = asyncio.run(converse())
    assert "user: The lamp of lock 0 shines in colour 0" in [memory.content for memory in kept]
    assert {memory.trust for memory in kept} == {"evidence"}


def test_without_a_question_nothing_is_asked():
    async def ask():
        async with AsyncReverie() as client:
            return await ReverieMemoryBlock(client=client).aget([ChatMessage(role="assistant", content="Well")])

    assert asyncio.run(ask()) == ""
