"""Read and answer the first lines of a host while the SDK is loaded in another thread."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TextIO, TypeVar

from web.mcp.greeting import (
    MOST_HEARD,
    Greeting,
    answer_list,
    answer_listen,
    choose_instructions,
    greet,
    refuse_early,
    speaks_modern,
)
from web.version import VERSION

if TYPE_CHECKING:
    from web.mcp.offered_tools import FindSwitches

CHUNK = 1 << 16

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OpeningLine:
    """A line that a host has sent, in the form for the SDK, and whether it was answered."""

    line: str
    answered: bool


Reply = Callable[[bytes, list[OpeningLine]], Greeting | None]


class HostInput:
    """Lines of a descriptor that another reader continues to read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._read = b""

    @property
    def has_line(self) -> bool:
        """Return whether another line was already read."""
        return b"\n" in self._read

    def next_line(self, chunk: int = CHUNK) -> bytes:
        """Wait for the next line and return it; empty at the end."""
        while not self.has_line and (more := os.read(self._descriptor, chunk)):
            self._read += more
        line, end, self._read = self._read.partition(b"\n")
        return line + end

    def take_rest(self) -> list[bytes]:
        """Return the lines that were read, the last one completed. Another reader continues after them."""
        lines = []
        while self._read:
            # Read byte by byte, so that nothing after the line is consumed.
            lines.append(self.next_line(chunk=1))
        return lines


class Loading(Generic[T]):
    """A value that takes long to create. It is created once: in a thread after `start`, else in `result`."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._thread: threading.Thread | None = None
        self._made: list[T] = []
        self._error: Exception | None = None

    def start(self) -> None:
        """Start to create the value, unless that has started."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="load", daemon=True)
            self._thread.start()

    def result(self) -> T:
        """Wait for the value and return it, or raise the error of its creation."""
        self.start()
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        return self._made[0]

    def _run(self) -> None:
        try:
            self._made.append(self._make())
        except Exception as error:  # noqa: BLE001 - raised where the result is asked for
            self._error = error


def answer_opening(
    host: HostInput, answers: TextIO, profile: str, loading: Loading[T], find_switches: "FindSwitches | None" = None
) -> list[OpeningLine]:
    """Answer a host until it sends something other than list requests; return the lines for the SDK.

    After the first list the host has the answers that it needs at its start, and the SDK is loaded.
    """
    heard: list[OpeningLine] = []
    greet_first = _greet_for(profile)
    reply = greet_first
    while len(heard) < MOST_HEARD and (line := host.next_line()):
        greeting = reply(line, heard)
        if greeting is None and not heard and reply is greet_first and speaks_modern(line):
            reply = _list_for(profile, find_switches, modern=True)
            greeting = reply(line, heard)
        if greeting is None:
            return [*heard, *_unanswered(line, *host.take_rest())]
        if greeting.answer is not None:
            answers.write(f"{greeting.answer}\n")
            answers.flush()
        if greeting.replay is not None:
            heard.append(OpeningLine(greeting.replay, greeting.answer is not None))
        elif not host.has_line:
            loading.start()
        if greeting.finished:
            reply = _list_for(profile, find_switches, modern=greeting.modern)
    return [*heard, *_unanswered(*host.take_rest())]


def _unanswered(*lines: bytes) -> list[OpeningLine]:
    return [OpeningLine(line.decode(errors="replace"), answered=False) for line in lines]


def _greet_for(profile: str) -> Reply:
    instructions = choose_instructions(profile)

    def reply(line: bytes, heard: list[OpeningLine]) -> Greeting | None:
        opened = any(previous.answered for previous in heard)
        answer = greet(line, VERSION, opened=opened, instructions=instructions)
        return answer or refuse_early(line, VERSION, opened=opened, instructions=instructions)

    return reply


def _list_for(profile: str, find_switches: "FindSwitches | None", *, modern: bool) -> Reply:
    # Imported after the answer to the handshake, which the host waits for.
    from web.mcp.catalog import build_catalog
    from web.mcp.full_tools import PROFILES
    from web.mcp.offered_tools import all_on, offer_tools

    switches = (find_switches or all_on)(None)
    catalog = build_catalog(offer_tools(PROFILES[profile], switches), is_enabled=switches.is_enabled)
    instructions = choose_instructions(profile)

    def reply(line: bytes, _heard: list[OpeningLine]) -> Greeting | None:
        listened = answer_listen(line) if modern else None
        return listened or answer_list(line, VERSION, catalog, modern=modern, instructions=instructions)

    return reply
