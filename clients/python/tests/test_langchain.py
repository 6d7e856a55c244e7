"""The retriever and the chat history with the real langchain-core, against a real stack."""

import asyncio

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from reverie_client import AsyncReverie, InvalidField, Reverie, Scope
from reverie_client.langchain import ReverieChatMessageHistory, ReverieRetriever

pytestmark = pytest.mark.usefixtures("workspace")


def test_retriever_works_in_a_langchain_chain():
    with Reverie() as client:
        stored = client.remember("Staging runs PostgreSQL on port 5433", kind="decision")
        client.remember("The kitchen is painted green")
        retriever = ReverieRetriever(client=client, search_kwargs={"kinds": ["decision"]})
        prompt = ChatPromptTemplate.from_template("{context} {question}")
        chain = {"context": retriever, "question": RunnablePassthrough()} | prompt
        assert "port 5433" in chain.invoke("which port does staging use").to_string()
        [document] = retriever.invoke("which port does staging use")
        assert (document.id, document.metadata["kind"]) == (stored.id, "decision")


@pytest.mark.parametrize("awaited", [True, False], ids=["an async client", "the sync one in a thread"])
def test_the_retriever_is_awaited(awaited):
    async def ask():
        async with AsyncReverie() as client:
            await client.remember("Staging runs PostgreSQL on port 5433")
            retriever = ReverieRetriever(async_client=client if awaited else None)
            return await retriever.ainvoke("which port does staging use")

    assert [document.page_content for document in asyncio.run(ask())] == ["Staging runs PostgreSQL on port 5433"]


def test_chat_history_returns_the_messages_added_to_it():
    messages = [
        SystemMessage("Be brief."),
        HumanMessage("yes"),
        AIMessage("  Calling\n", tool_calls=[{"name": "look", "args": {"at": 1}, "id": "c1"}], id="m3"),
        ToolMessage("5433", tool_call_id="c1"),
        HumanMessage("yes"),
        AIMessage(""),
    ]
    ReverieChatMessageHistory("s1").add_messages(messages[:4])
    ReverieChatMessageHistory("s1").add_messages(messages[4:])
    ReverieChatMessageHistory("s2").add_messages([HumanMessage("Something else")])
    assert ReverieChatMessageHistory("s1").messages == messages
    assert asyncio.run(ReverieChatMessageHistory("s1").aget_messages()) == messages
    ReverieChatMessageHistory("s1").clear()
    assert ReverieChatMessageHistory("s1").messages == []
    assert len(ReverieChatMessageHistory("s2").messages) == 1


def test_a_message_that_was_archived_is_a_message_still():
    history = ReverieChatMessageHistory("s1")
    history.add_messages([HumanMessage("One"), AIMessage("Two")])
    with Reverie() as client:
        client.archive(next(client.memories(scope=Scope(kind="session", id="s1"))).id)
    assert [message.text for message in history.messages] == ["One", "Two"]


def test_a_message_that_is_too_large_is_refused_and_nothing_is_stored():
    history = ReverieChatMessageHistory("s1")
    with pytest.raises(InvalidField, match="metadata"):
        history.add_messages([HumanMessage("Short"), HumanMessage("x" * 20_000)])
    with Reverie() as client:
        client.remember("So that there is a workspace")
    assert history.messages == []


def test_unwritten_chat_history_is_empty():
    assert ReverieChatMessageHistory("s1").messages == []


def test_a_runnable_remembers_its_session():
    model = RunnableLambda(lambda messages: AIMessage(f"I heard {len(messages)}"))
    chat = RunnableWithMessageHistory(model, ReverieChatMessageHistory)
    session = {"configurable": {"session_id": "s1"}}
    chat.invoke([HumanMessage("Hello")], session)
    assert chat.invoke([HumanMessage("Again")], session).text == "I heard 3"
