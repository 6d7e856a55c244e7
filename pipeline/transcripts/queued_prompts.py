"""Prompts that a person typed while the agent worked.

Claude Code records that such a prompt was queued, and what became of it: withdrawn (`popAll`), handed to the agent
in the middle of its turn (`remove`), or sent as the next prompt (`dequeue`), which is recorded again as a message.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from pipeline.transcripts.fields import as_list, as_text

# Prompts that may be recorded a second time are the latest.
MOST_PROMPTS = 30

Prompt = dict[str, str]


class QueuedPrompts:
    """The queue, the prompts that are expected as messages, and the prompts that were taken from the queue."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        """Start with a saved queue."""
        self._waiting, self._expected = (_load(state.get(name)) for name in ("waiting", "expected"))
        self._taken = [as_text(text) for text in as_list(state.get("taken"))]

    def save(self) -> dict[str, Any]:
        """Return the queue as JSON; empty if there is nothing to remember."""
        lists = {"waiting": self._waiting, "expected": self._expected, "taken": self._taken}
        return {name: prompts for name, prompts in lists.items() if prompts}

    def add(self, text: str, at: str) -> None:
        """Queue a prompt."""
        if text:
            self._waiting = [*self._waiting, {"text": text, "at": at}][-MOST_PROMPTS:]

    def withdraw(self) -> int:
        """Drop all prompts that wait; return their number."""
        count = len(self._waiting)
        self._waiting = []
        return count

    def hand_over(self, text: str) -> list[Prompt]:
        """Take the first prompt that waits, or the prompt with a text."""
        prompts = [prompt for prompt in self._waiting if not text or prompt["text"] == text][:1]
        for prompt in prompts:
            self._waiting.remove(prompt)
            self.remember(prompt["text"])
        return prompts

    def expect(self) -> None:
        """Expect the first prompt that waits as a message."""
        if self._waiting:
            self._expected = [*self._expected, self._waiting.pop(0)][-MOST_PROMPTS:]

    def remember(self, text: str) -> None:
        """Remember a prompt that was taken, to recognize a second record of it."""
        self._taken = [*self._taken, _hash(text)][-MOST_PROMPTS:]

    def take_known(self, text: str) -> bool:
        """Forget a prompt that was taken before; return whether a message is one."""
        digest = _hash(text.strip())
        if digest in self._taken:
            self._taken.remove(digest)
            return True
        return False

    def take_expected(self, text: str) -> list[Prompt]:
        """Take the prompts that a message should repeat, but does not."""
        missing = [prompt for prompt in self._expected if prompt["text"] not in text]
        self._waiting = [prompt for prompt in self._waiting if prompt["text"] != text.strip()]
        self._expected = []
        for prompt in missing:
            self.remember(prompt["text"])
        return missing

    def clear(self) -> None:
        """Drop all prompts: no person queued them."""
        self._waiting, self._expected = [], []

    def take_all(self) -> list[Prompt]:
        """Take all prompts that wait or are expected."""
        prompts = self._expected + self._waiting
        self._waiting, self._expected = [], []
        return prompts


def _hash(text: str) -> str:
    # A mark is stored: it must not keep what the person said.
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _load(prompts: Any) -> list[Prompt]:
    return [
        {"text": as_text(prompt.get("text")), "at": as_text(prompt.get("at"))}
        for prompt in as_list(prompts)
        if isinstance(prompt, dict)
    ]
