"""Read server-sent events.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a stream: its id and the time to reconnect, if it sets them, and the data, empty without an event."""

    data: str
    id: str | None = None
    retry_ms: int | None = None


def read_blocks(lines: Iterable[bytes]) -> Iterator[Block]:
    """Yield each complete block; a block that the end of the stream cuts off is left out."""
    fields: dict[str, str] = {}
    data: list[str] = []
    for line in lines:
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        if text:
            name, _, value = text.partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                data.append(value)
            elif name:
                fields[name] = value
            continue
        if fields or data:
            retry = fields.get("retry", "")
            yield Block("\n".join(data), fields.get("id"), int(retry) if retry.isdecimal() else None)
        fields, data = {}, []
