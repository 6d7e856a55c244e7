"""What keeps two memories apart although their texts say the same."""

import re

from pipeline.records import Kind, Memory

# What happened twice happened twice, however alike it is told.
EVENTS = frozenset({Kind.ACTIVITY, Kind.EPISODE, Kind.MILESTONE})

_OF_ITS_DAY = re.compile(
    r"\b(today|tonight|yesterday|tomorrow|(last|this|next) (week|month|year|night|\w+day)|heute|gestern|morgen|hoy|ayer"
    r"|mañana|aujourd'hui|hier|demain|hoje|ontem|amanhã|сегодня|вчера|завтра|сьогодні|вчора)\b|今天|昨天|明天|今日|昨日|明日",
    re.IGNORECASE,
)


def hindrances(survivor: Memory, absorbed: Memory) -> tuple[str, ...]:
    """Say in fixed phrases why one memory may not speak for another; nothing when it may."""
    found = []
    if survivor.occurred_at[:10] != absorbed.occurred_at[:10] and any(
        _OF_ITS_DAY.search(memory.content) for memory in (survivor, absorbed)
    ):
        found.append("each speaks of its own day")
    if absorbed.kind in EVENTS:
        found.append("events may happen twice")
    if survivor.details != absorbed.details:
        found.append("their fields differ")
    if survivor.anchor != absorbed.anchor:
        found.append("they are about different code")
    if survivor.branch != absorbed.branch:
        found.append("they belong to different branches")
    newer = max(survivor, absorbed, key=lambda memory: memory.seq)
    if absorbed.pinned:
        found.append(f"the {'newer' if absorbed is newer else 'older'} one is pinned")
    if survivor.candidate and not absorbed.candidate:
        found.append(f"the {'newer' if survivor is newer else 'older'} one waits for review")
    return tuple(found)
