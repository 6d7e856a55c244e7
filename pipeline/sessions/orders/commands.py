"""Commands to the memory in a prompt: "remember this: …", "could you forget that …?", "block this"."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pipeline.sessions.orders.forms import drop_asking, find_statement_orders, has_order_word, orders_purge
from pipeline.text.own_words import Origin, Passage, refers_to_text, split_message

# In a longer paragraph, a command is more likely part of pasted text.
MAX_OTHER_LINES = 5


class CommandType(StrEnum):
    """The type of a command."""

    REMEMBER = "remember"
    FORGET = "forget"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class MemoryCommand:
    """A command in a prompt; `text` is what to remember or to forget, empty for the last memory, or a rule to block by.

    A command that `is_doubtful` may have been pasted: it changes nothing before the person confirms it.
    """

    type: CommandType
    text: str
    is_doubtful: bool = False
    # Whether all statements about the topic are meant, not only the best match.
    is_about_topic: bool = False
    # Whether the words may also be meant for the agent: "forget the retention thing". It is carried out only if few
    # memories are meant.
    is_loose: bool = False


# To forget and to block only at the start of a line: inside a sentence the words are reported speech.
_OPENING = r"^ {0,3}(?:(?:please|pls|plz|ok|okay|bitte|por favor|s'il te pla[iî]t)[,:]?\s+)?"
_FORGET_VERB = (
    r"(?:forget|vergiss|vergessen|olvida|olvidar|oublie|oublier|dimentica|dimenticare|esquece|esque[çc]a|esquecer|"
    r"vergeet|vergeten)"
)
_FORGET = re.compile(
    rf"{_OPENING}{_FORGET_VERB}(?:\s+|(?=,\s*was ich))"
    r"(?:(?P<last>(?:that|this|das|eso|esto|[cç]a|cela)(?:\s+(?:please|bitte|again|wieder))?\s*[.!]*$)"
    r"|(?P<topic>(?:what I (?:just )?(?:said|told you|wrote|mentioned) about|everything (?:I said )?about|"
    r"alles (?:über|zu)|,?\s*was ich (?:dir )?(?:über|zu|zum|zur)|todo (?:sobre|lo de)|"
    r"lo (?:que (?:te )?(?:dije|cont[eé]|he dicho) (?:sobre|de|del) (?:el |la |los |las )?|del? )|"
    r"tout (?:sur|ce que j['’]ai dit sur)|ce que (?:je t['’]ai|j['’]ai) dit (?:sur|de|du|à propos de)|"
    r"(?:quello|ciò) che (?:ti )?ho detto (?:su|di|del|della|riguardo a)l?(?: il| la| i| le)?|tutto su|"
    r"o que (?:eu )?(?:te )?(?:disse|falei) (?:sobre|de|do|da)(?: [oa])?|tudo sobre|"
    r"wat ik (?:je )?(?:zei|heb gezegd|vertelde) over|alles over)\s*:?\s*)"
    r"(?P<of>\S.*)|(?:(?:that|dass|que|che|dat)\s*:?\s+)(?P<about>\S.*))",
    re.IGNORECASE,
)
_FORGET_TEXT = re.compile(rf"{_OPENING}{_FORGET_VERB}\s*:\s*(?P<about>\S.*)", re.IGNORECASE)
_TOPIC_END = re.compile(
    r"(?:,?\s+(?:gesagt|erzählt|geschrieben)(?:\s+habe?)?)?(?:,?\s+(?:please|bitte|por favor))?[.!\s]*$", re.IGNORECASE
)
# "Forget that I said this" names no topic.
_JUST_SAID = re.compile(
    r"(?:(?:i|ich|yo|je|j['’])\s*.{0,20})?\b(?:said|told|wrote|mentioned|gesagt|erz[aä]hlt|geschrieben|dije|dicho|"
    r"contado|cont[eé]|dit|racont[eé]|[eé]crit)\b",
    re.IGNORECASE,
)
# Something that was said, named by its topic: "forget the retention thing", "forget the thing with the classes".
_NOTED = (
    r"(?:thing|stuff|rule|part|bit|note|idea|limit|ban|goal|deadline|decision|convention|preference|number|value|scheme|"
    r"name|guy|sache|ding|regel|vorgabe|notiz|grenze|frist|entscheidung|ziel|verbot|wert|"
    r"truc|r[eè]gle|histoire|chose|objectif|cosa|regla|tema|norma|objetivo)"
)
_SAID_THAT = (
    r"(?:(?:that|what) i(?:'ve|['’]d)? (?:just )?(?:said|told you|wrote|mentioned)(?: that)?|"
    r"dass ich (?:dir )?(?:gesagt|erzählt) habe,? dass|que (?:te )?dije que|"
    r"que (?:je t['’]ai|j['’]ai) dit qu(?:e|['’]))"
)
_LOOSE_FORGET = re.compile(
    rf"{_OPENING}{_FORGET_VERB}\s+(?:about\s+)?(?:(?P<said>{_SAID_THAT})\s*|"
    r"(?:the|this|that|my|our|your|das|die|den|meine?n?|unsere?n?|le|la|les|l['’]|el|los|las|lo)\s*\b"
    rf"(?:(?:{_NOTED})s?\s+(?:with|about|of|for|on|that|mit|über|zu|avec|sur|de|del|con|sobre)\b\s*|"
    rf"(?:mit|avec|de|del|con)\s+|(?=(?:[^\s,;.!?]+[\s-]+){{1,4}}?(?:\S+-)?{_NOTED}s?\b)))(?P<topic>[^\s,;.!?].*)",
    re.IGNORECASE,
)
# Where the topic ends, and the reason or another sentence begins.
_TOPIC_STOP = re.compile(
    r"(?:\s+(?:from|since|von|de|du) (?:this|last|earlier|before|yesterday|today|heute|gestern|vorhin|hier|ayer|hoy|"
    r"ce)\b[^,;.!?:]*)?(?:[,;!?:…(]|\.(?=\s|\.|$)|\s[-–—]+\s|"
    r"\s(?=(?:because|since|cause|as we|weil|denn|parce que|car|porque)\b)|$)[\s.!…]*(?P<rest>.*)$",
    re.IGNORECASE,
)
_NOTED_END = re.compile(rf"[\s-]+{_NOTED}s?$", re.IGNORECASE)
_NO_TOPIC = frozenset(
    ("that", "this", "it", "first", "second", "last", "other", "whole", "same", "new", "old", "erste", "letzte")
)
# What is left for later is not forgotten.
_FOR_NOW = re.compile(
    r"\b(?:for (?:now|the moment|today|this)|right now|first|until|erstmal|vorerst|fürs erste|zuerst|jetzt|"
    r"pour l['’]instant|d['’]abord|por ahora|de momento|primero)\b",
    re.IGNORECASE,
)
# The answer to "Block this from now on?", or the same words with the rule itself.
_FROM_NOW = (
    r"(?:[,\s]+(?:from now on|in (?:the )?future|always|please|too|ab (?:jetzt|sofort)|von jetzt an|"
    r"k[uü]nftig|in zukunft|immer|bitte|auch|de ahora en adelante|a partir de ahora|siempre|por favor|"
    r"d[eé]sormais|dor[eé]navant|[aà] partir de maintenant|toujours|s'il te pla[iî]t))*"
)
_BLOCK = re.compile(
    r"^ {0,3}(?:(?:please|ok|okay|bitte|por favor|s'il te pla[iî]t)[,:]?\s+)?"
    r"(?:(?:yes|yep|ja|jawohl|s[ií]|oui)(?:\s+(?:please|bitte))?[,!.:]?\s+)?(?:please\s+|bitte\s+)?"
    r"(?:block(?:\s+(?:this|that|it|them|such calls))|block(?=[\s.!,]*$)|(?:das|es)\s+(?:blockieren|sperren)"
    r"|(?:blockiere?n?|sperren?)(?:\s+(?:das|es|dies|so etwas|sowas|solche aufrufe))?"
    r"|bloqu[eé]a(?:lo|r|rlo)?(?:\s+(?:esto|eso))?|bloque(?:[rz]|-le|-la|-les)?(?:\s+([cç]a|cela|ceci))?)"
    rf"{_FROM_NOW}\s*(?:[.!]*\s*$|:\s*(?P<text>\S.*))",
    re.IGNORECASE,
)


def read_commands(message: str) -> list[MemoryCommand]:
    """Return a person's commands to the memory in a message; pasted and quoted lines are ignored."""
    if not has_order_word(message):
        return []
    passages = split_message(message)
    commands = [command for line in _own_lines(passages) for command in read_line(line)[0]]
    if commands and _may_be_pasted(passages):
        return [replace(command, is_doubtful=True) for command in commands]
    return commands


def has_sure_command(message: str) -> bool:
    """Return whether a message contains a command that can mean nothing else."""
    return any(not command.is_loose for command in read_commands(message))


def _may_be_pasted(passages: Sequence[Passage]) -> bool:
    """Return whether commands may belong to text that was pasted without a mark.

    They do not if they are the person's entire message, or lines of one short paragraph that announces no text. Below
    a pasted part they may belong to it.
    """
    origins = [passage.origin for passage in passages]
    last = len(origins) - origins[::-1].index(Origin.PERSON)
    if Origin.PASTED in origins[:last]:
        return True
    lines = [read_line(line) for line in _own_lines(passages)]
    others = [rest for commands, rest in lines if not commands]
    # Next to an order in the same line, a comma or a question introduces no text.
    parts = [rest.strip() for commands, rest in lines if commands]
    is_one_paragraph = origins.count(Origin.PERSON) == 1
    return any(part.endswith((":", "：")) or refers_to_text(part) for part in parts) or (
        bool(others) and (not is_one_paragraph or len(others) > MAX_OTHER_LINES or any(map(_may_announce_text, others)))
    )


def _may_announce_text(line: str) -> bool:
    # A line that ends with a comma is a salutation, as in letters; a line without words separates two texts.
    is_open = line.rstrip().endswith((":", "：", ",", "?", "？"))
    return is_open or refers_to_text(line) or not any(map(str.isalnum, line))


def _own_lines(passages: Sequence[Passage]) -> list[str]:
    return [line for passage in passages if passage.origin is Origin.PERSON for line in passage.lines]


def read_line(line: str) -> tuple[list[MemoryCommand], str]:
    """Return the commands in a line, and the line without them."""
    if not has_order_word(line):
        return [], line
    if (whole := _read_whole(line) or _read_loose(line)) is not None:
        return [whole[0]], whole[1]
    commands, rest, end = [], [], 0
    for order in find_statement_orders(line):
        commands.append(MemoryCommand(CommandType.REMEMBER, order.text))
        rest.append(line[end : order.start])
        end = order.end
    return commands, "".join([*rest, line[end:]])


def _read_whole(line: str) -> tuple[MemoryCommand, str] | None:
    """Return the command to forget or to block that a line is, and the rest of the line.

    Words that delete for good are no such command.
    """
    asked = drop_asking(line)
    text = asked if asked is not None else line
    if text.rstrip().endswith("?") or orders_purge(line):
        return None
    if match := _FORGET.match(text) or _FORGET_TEXT.match(text):
        return _read_forget(match)
    if match := _BLOCK.match(line):
        return MemoryCommand(CommandType.BLOCK, (match["text"] or "").strip()), ""
    return None


def _read_forget(match: re.Match[str]) -> tuple[MemoryCommand, str] | None:
    groups = match.groupdict()
    topic, about = groups.get("of"), groups.get("about") or ""
    if topic is not None:
        topic, rest = _split_reason(topic)
        return MemoryCommand(CommandType.FORGET, _strip_topic(topic), is_about_topic=True), rest
    if _JUST_SAID.match(about):
        return None
    return MemoryCommand(CommandType.FORGET, about.strip().rstrip(".")), ""


def _read_loose(line: str) -> tuple[MemoryCommand, str] | None:
    """Return the loose command to forget that a line begins with, and the rest of the line."""
    match = _LOOSE_FORGET.match(line)
    if match is None or line.rstrip().endswith("?") or orders_purge(line):
        return None
    topic, rest = _split_reason(match["topic"])
    topic = _NOTED_END.sub("", _strip_topic(topic))
    if topic.lower() in _NO_TOPIC or _FOR_NOW.search(topic):
        return None
    return MemoryCommand(CommandType.FORGET, topic, is_about_topic=True, is_loose=True), rest


def _split_reason(text: str) -> tuple[str, str]:
    """Return a topic, and the reason or the sentence after it."""
    end = _TOPIC_STOP.search(text)
    return (text, "") if end is None else (text[: end.start()], text[end.start("rest") :])


def _strip_topic(topic: str) -> str:
    """Return a topic without the verb and the marks at its end: German puts "gesagt habe" there."""
    return _TOPIC_END.sub("", topic.strip()).strip()
