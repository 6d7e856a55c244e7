"""Find entities by their spelling, with rules alone.

Every pattern is linear in the text: it reads a maximal run once (possessive quantifiers, a lookbehind that forbids
starting inside a run) or looks a bounded distance ahead; plain code then interprets the run.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from pipeline.kernel.records import EntityKind
from pipeline.kernel.records.digestion import EntityMention
from pipeline.text.component_names import find_component_names, find_marked_names
from pipeline.text.known_names import find_known_names
from pipeline.text.lexicon import load_lexicon
from pipeline.text.names import DATE, TRAILING, canonical_entity_name, iso_date

_LEXICON = load_lexicon("entities")

# Among candidates of equal length over the same text, the earlier kind wins.
_PRECEDENCE = tuple(
    EntityKind(kind)
    for kind in [
        *("url", "package", "file", "pull_request", "ticket", "date", "version", "port", "command"),
        *("product", "organisation", "place", "person", "identifier"),
    ]
)
_WORD_BEFORE = 32  # characters looked back over for a cue word

# Files

_FILE_RUN = re.compile(r"(?:(?<!\w)[A-Za-z]:(?=[\\/][^\s/]))?[\w.@~+/\\-]++")
_EXTENSION = re.compile(_LEXICON.alternatives("extensions"), re.IGNORECASE)
_NAMED_FILE = re.compile(_LEXICON.alternatives("named_files"))
_DOTFILE = re.compile(
    r"\.(?:env(?:\.[\w-]+)*|[a-z-]*rc|[a-z]+ignore|git[a-z]*|editorconfig|htaccess|bash_[a-z]+|(?:[a-z]+-)?profile"
    r"|[a-z]+-version|tool-versions|venv|ssh|aws|vscode|idea|claude|cursor|config|cache)"
)
_ROOT = re.compile(_LEXICON.alternatives("roots"))
_RECEIVER = re.compile(_LEXICON.alternatives("receivers"))
_ANCHORED = re.compile(r"[A-Za-z]:[\\/]|~/|\.{1,2}/")
_JS_LIBRARY = re.compile(rf"(?:{_LEXICON.alternatives('js_libraries')})\.js", re.IGNORECASE)

# Links

_URL = re.compile(
    rf"(?<![A-Za-z0-9])(?:(?:{_LEXICON.alternatives('schemes')})://|www\.)"
    r"[^\s<>\"`|\\^]++"
    r"|(?<![\w@./-])(?:[a-z0-9-]{1,60}+\.){1,3}(?<=\.)(?:com|org|net|io|dev|ai)/[^\s<>\"`|\\^]++",
    re.IGNORECASE,
)
_IN_URL = re.compile(
    r"(?P<pull_request>(?:pull|pull-requests|merge_requests)/(?P<pr>[1-9][0-9]{0,8}))(?![\w.-])"
    r"|(?P<ticket>issues/(?P<issue>[1-9][0-9]{0,8}))(?![\w.-])"
    r"|(?<=[\w\]]):(?P<port>[0-9]{2,5})(?![\w.:-])"
)

# Tickets and pull requests

_PULL = re.compile(
    r"(?<![\w-])(?:(?i:prs?|pull[ -]requests?|merge[ -]requests?)|MRs?)[ \t-]{0,2}"
    r"[#!]?([1-9][0-9]{0,6})(?!\w|[.:,][0-9])"
    r"|(?<![^\s(\[,;:])!([1-9][0-9]{1,6})(?![\w.]|\s?=)"
)
_TICKET_KEY = re.compile(r"(?<![\w/.-])([A-Z]{2}[A-Z0-9]{0,8})-([1-9][0-9]{0,6})(?!\w|[-.:/][\w])")
_NUMBER = re.compile(r"(?<=[^\W\d_] )[1-9][0-9]{0,5}(?![\w%-]|[.,:][0-9]|[ ](?:of|in|out|hours?|days?)\b)")
_TICKET_NOUN = re.compile(rf"\b(?i:{_LEXICON.alternatives('ticket_nouns')})[ ]$")
_RECORD = re.compile(r"(?<![\w/.-])(ADR|INC)[- ]?0*([1-9][0-9]{0,5})(?!\w|[-./][\w])")
_VULNERABILITY = re.compile(r"(?<![\w-])CVE-[0-9]{4}-[0-9]{4,7}(?!\w)", re.IGNORECASE)
# Standards, ciphers, models and months are spelled like tickets.
_NOT_A_PROJECT = re.compile(_LEXICON.alternatives("not_projects"))
_ISSUE = re.compile(r"(?<![\w#&/.-])([\w-]{1,39}+/[\w-]{1,60}+)?#([1-9][0-9]{0,6})(?![\w-]|[.,][0-9])")
_ISSUE_CUE = re.compile(rf"(?:{_LEXICON.alternatives('issue_cues')})[ \t:(]*$", re.IGNORECASE)
_NOT_ISSUE_CUE = re.compile(rf"(?:{_LEXICON.alternatives('not_issue_cues')})[ \t:=(\"']*$", re.IGNORECASE)

# Versions, dates, ports

_VERSION = re.compile(
    r"(?<![\w.])(v?)([0-9]{1,4}(?:\.[0-9]{1,6}){0,3})"
    r"([.-]?(?:alpha|beta|rc|dev|post|pre|preview|canary|next|snapshot|a|b)[.-]?[0-9]{0,6})?(\+[0-9A-Za-z]{1,20})?"
    r"(?![\w%]|[.:][0-9]|-[0-9])",
    re.IGNORECASE,
)
_VERSION_CUE = re.compile(rf"(?:(?i:\b(?:{_LEXICON.alternatives('version_cues')})[ -])|\bGo |[=~]=|(?<=\w)@[\^~]?)$")
_DOTTED_DATE = re.compile(r"(?:19|20)\d\d\.(?:0?[1-9]|1[0-2])\.(?:0?[1-9]|[12]\d|3[01])|\d\d?\.\d\d?\.(?:19|20)\d\d")
_PORT = re.compile(
    r"(?:(?<![A-Za-z0-9])(?i:ports?)(?:[ \t](?i:number|no\.?))?[ \t]?[:=#]?[ \t]?"
    r"|(?<![\w.-])(?:localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3}):"
    r"|(?<![\w:.\])}/-]):(?=[0-9]{4}))([0-9]{2,5})(?![\w-]|[.:,][0-9])"
)
_MAX_PORT = 65535

# Packages and commands

_INSTALL = re.compile(
    rf"(?<![\w/.-])(?:{_LEXICON.alternatives('package_managers')})[ ](?:install|add|i|get)(?![\w-])([^\n`;|&]{{1,240}})"
)
_FLAG_WITH_VALUE = re.compile(r"-[recit]|--(?:index-url|extra-index-url|requirement|constraint|find-links|editable)")
_PACKAGE_TOKEN = re.compile(
    r"[\"']?(@[\w.-]+/[\w.-]+|[A-Za-z0-9][\w.-]*+(?:/[\w./-]+)?)(?:\[[\w,-]*\])?(?:[=<>~!@^].*|[\"',.:)]*)"
)
_NOT_A_PACKAGE = re.compile(_LEXICON.alternatives("not_packages"), re.IGNORECASE)
_PINNED = re.compile(
    r"(?<![\w@/.-])(?:(?P<py>[A-Za-z][\w.-]{1,80}+)(?:\[[\w,-]{0,60}\])?(?:[=~]=[0-9]+\.[0-9]|>=[0-9.]{1,20}+(?:,<|\.[0-9]))"
    r"|(?P<npm>@?[a-z][\w.-]{0,80}+(?:/[\w.-]{1,80}+)?)@[\^~]?[0-9]+\.[0-9]"
    r"|(?P<scoped>@[a-z0-9][\w.-]{0,60}+/[a-z0-9][\w-]{0,60}+))"
)
_IMPORT = re.compile(
    r"(?:^[ \t>]{0,12}|[`;])import[ ]+(?P<py>[A-Za-z_][\w.]*+)(?=[ \t]*(?:$|[,;`#]|as[ ]))"
    r"|(?<![\w-])from[ ](?P<of>[A-Za-z_][\w.]*+)[ ]import(?!\w)"
    r"|(?<!\w)(?:from[ ]|require\(|import[ (])[\"'](?P<js>@?[\w-]{1,80}+(?:/[\w.-]{1,80}+)?)[\"'/]",
    re.MULTILINE,
)
_PROMPT = re.compile(r"(?:^[ \t>*-]{0,8}|[:`][ \t]?)\$[ \t]{1,3}(?P<line>[A-Za-z./~][^\n`]{0,240}+)", re.MULTILINE)
_BACKTICKS = re.compile(r"(?<!`)`([^`\n]{1,240}+)`(?!`)")
_PROGRAM = re.compile(_LEXICON.alternatives("programs"))
_ASSIGNMENT = re.compile(r"[A-Z_][A-Z0-9_]*=\S*")
_FLAG = re.compile(r"--?[A-Za-z][\w-]*(?:=.*)?")

# Identifiers

_NAME_RUN = re.compile(r"(?<!\w)[A-Za-z_]\w*+(?:(?:\.|::|->)[A-Za-z_]\w*+)*+(?:\(\))?+")
_CAMEL = re.compile(r"_?(?:[A-Za-z][a-z0-9]+[A-Z]\w|[A-Z]{3,}[a-z]{2})")
_SURNAME = re.compile(r"(?:Mc|Mac|De|Le|La|Di|Du)[A-Z][a-z]+")
_JOINTS = re.compile(r"\.|::|->")
_TOP_LEVEL = re.compile(_LEXICON.alternatives("top_levels"), re.IGNORECASE)
_QUOTED_NAME = re.compile(r"(?:--?|[@$#.])?[A-Za-z_][\w$-]*+(?:(?:\.|::|->|#)[\w$-]++)*+[!?]?(?:\([^()]*+\))?")

# The kind of an entity, its start and end, and its name if that is not its spelling.
Found = tuple[EntityKind, int, int] | tuple[EntityKind, int, int, str | None]
_Rule = Callable[[str], Iterator[Found]]


def find_entities_by_rule(text: str) -> list[EntityMention]:
    """Find the entities that their spelling reveals, in text order.

    Mentions do not overlap, with one exception: a pull request, an issue or a port in a URL is listed in addition to
    the URL. Among overlapping candidates the longest wins, then the kind of higher precedence, then the first.
    """
    candidates = [_mention(text, *found) for rule in _RULES for found in rule(text)]
    candidates.sort(key=lambda m: (m.start - m.end, _PRECEDENCE.index(m.kind), m.start))
    chosen = list(claim_free(bytearray(len(text)), candidates))
    urls = [mention for mention in chosen if mention.kind is EntityKind.URL]
    chosen += [_mention(text, *inner) for url in urls for inner in _inside_url(text, url)]
    return sorted(chosen, key=lambda m: (m.start, -m.end))


def claim_free(taken: bytearray, mentions: Iterable[EntityMention]) -> Iterator[EntityMention]:
    """Yield the mentions that overlap no taken place of a text, and take their places."""
    for mention in mentions:
        if taken.find(1, mention.start, mention.end) < 0:
            taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
            yield mention


def _mention(text: str, kind: EntityKind, start: int, end: int, name: str | None = None) -> EntityMention:
    surface = text[start:end]
    return EntityMention(kind, canonical_entity_name(kind, surface if name is None else name), surface, start, end)


def _urls(text: str) -> Iterator[Found]:
    for match in _URL.finditer(text):
        start, end = match.span()
        surplus = {")": text.count(")", start, end) - text.count("(", start, end)}
        surplus["]"] = text.count("]", start, end) - text.count("[", start, end)
        while end > start and (text[end - 1] in TRAILING + "*}" or surplus.get(text[end - 1], 0) > 0):
            end -= 1
            if text[end] in surplus:
                surplus[text[end]] -= 1
        if not text[start:end].endswith("://"):
            yield EntityKind.URL, start, end


def _inside_url(text: str, url: EntityMention) -> Iterator[Found]:
    for match in _IN_URL.finditer(text, url.start, url.end):
        if match["pr"]:
            yield EntityKind.PULL_REQUEST, *match.span("pull_request"), match["pr"]
        elif match["issue"]:
            yield EntityKind.TICKET, *match.span("ticket"), f"#{match['issue']}"
        elif int(match["port"]) <= _MAX_PORT:
            yield EntityKind.PORT, *match.span("port")


def _files(text: str) -> Iterator[Found]:
    for match in _FILE_RUN.finditer(text):
        run = match[0].rstrip("-+.@~")
        # Most runs are plain words.
        if run.isalpha() and not _NAMED_FILE.fullmatch(run):
            continue
        lead = len(run) - len(run.lstrip("-+@"))
        start, end = match.start() + lead, match.start() + len(run)
        if end > start and text[end : end + 1] != "(" and _is_path(text[start:end], text[end : end + 1]):
            yield EntityKind.FILE, start, end


def _is_path(run: str, following: str) -> bool:
    parts = [part for part in re.split(r"[\\/]", run) if part]
    if not re.search(r"[A-Za-z]", run):
        return False
    if run == parts[0]:
        return "@" not in run and _is_file_name(run)
    if _ANCHORED.match(run):
        return bool(re.match(r"\w|\.\w", parts[-1]))
    named = _is_file_name(parts[-1]) or bool(_DOTFILE.fullmatch(parts[0]))
    return not run.startswith("//") and (named or ("\\" not in run and _is_bare_path(run, parts, following)))


def _is_bare_path(run: str, parts: list[str], following: str) -> bool:
    """Return whether a run is a path without an extension, not words joined by a slash ("and/or", "read/write")."""
    closed = run.endswith("/") and not following.isalpha()
    if len(parts) == 1:
        return closed and not run.startswith("/") and bool(_ROOT.fullmatch(parts[0]))
    rooted = run.startswith("/") and following != ">"
    coined = len(parts) > 2 and any(map(_is_coined, parts))
    return rooted or coined or bool(_ROOT.fullmatch(parts[0])) or (closed and len(parts[0]) > 1)


def _is_file_name(name: str) -> bool:
    if _NAMED_FILE.fullmatch(name) or _DOTFILE.fullmatch(name):
        return True
    stem, dot, extension = name.rpartition(".")
    if not dot or not _EXTENSION.fullmatch(extension) or _JS_LIBRARY.fullmatch(name) or _RECEIVER.fullmatch(stem):
        return False
    one_case = extension.islower() or extension.isupper() or extension[0].isdigit()
    return one_case and len(stem.strip(".")) >= (1 if len(extension) > 1 else 2) and not stem.endswith(".")


def _tickets(text: str) -> Iterator[Found]:
    for match in _NUMBER.finditer(text):
        if cue := _TICKET_NOUN.search(text, max(0, match.start() - _WORD_BEFORE), match.start()):
            yield EntityKind.TICKET, cue.start(), match.end(), f"#{match[0]}"
    for match in _ISSUE.finditer(text):
        before = text[max(0, match.start() - _WORD_BEFORE) : match.start()]
        bare = 1 < len(match[2]) < 6 and not _NOT_ISSUE_CUE.search(before)
        if match[1] or bare or _ISSUE_CUE.search(before):
            yield EntityKind.TICKET, *match.span()


def _read_ticket_key(match: re.Match[str]) -> str | None:
    key, number = match.groups()
    if key in {"PR", "MR"} or _NOT_A_PROJECT.fullmatch(key):
        return None
    return f"#{number}" if key == "GH" else match[0]


def _read_version(match: re.Match[str]) -> str | None:
    prefix, number, suffix, _ = match.groups()
    parts = number.count(".") + 1
    before = match.string[max(0, match.start() - _WORD_BEFORE) : match.start()]
    certain = prefix == "v" or (prefix and parts > 1)
    plain = parts == 3 and not _DOTTED_DATE.fullmatch(number)
    cued = parts == 2 and bool(suffix or _VERSION_CUE.search(before))
    return match[0] if certain or plain or cued else None


def _packages(text: str) -> Iterator[Found]:
    for match in _INSTALL.finditer(text):
        for start, end in _find_installed(text, match):
            yield EntityKind.PACKAGE, start, end
    for match in _PINNED.finditer(text):
        assert match.lastgroup
        yield EntityKind.PACKAGE, *match.span(match.lastgroup)
    for match in _IMPORT.finditer(text):
        assert match.lastgroup
        span = match.span(match.lastgroup)
        module = match[match.lastgroup]
        if match.lastgroup != "js":
            module = module.split(".", 1)[0]
        elif not module.startswith("@"):
            module = module.split("/", 1)[0]
        yield EntityKind.PACKAGE, *span, module


def _find_installed(text: str, install: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Return the positions of the packages in an install line; in prose only the first word can be a package."""
    line_start = text.rfind("\n", 0, install.start()) + 1
    quoted = text[line_start : install.start()].strip(" \t>*-$") == "" or text[install.start() - 1] in "`$"
    skip = False
    for token in re.finditer(r"\S+", install[1]):
        if skip or token[0].startswith("-"):
            skip = not skip and bool(_FLAG_WITH_VALUE.fullmatch(token[0]))
            continue
        name = _PACKAGE_TOKEN.fullmatch(token[0])
        if not name or _NOT_A_PACKAGE.fullmatch(name[1]) or _is_path(name[1], ""):
            return
        offset = install.start(1) + token.start()
        yield offset + name.start(1), offset + name.start(1) + len(name[1].rstrip(".-/"))
        if not quoted:
            return


def _commands(text: str) -> Iterator[Found]:
    spans = [match.span("line") for match in _PROMPT.finditer(text)]
    spans += [match.span(1) for match in _BACKTICKS.finditer(text) if _is_command(match[1])]
    for start, end in spans:
        line = text[start:end]
        install = _INSTALL.search(line)
        # The subject of an install line is its packages.
        if install and any(_find_installed(line, install)):
            continue
        command = line.lstrip(" $")
        # A prompt followed only by a full stop is no command.
        if canonical_entity_name(EntityKind.COMMAND, command.rstrip()):
            yield EntityKind.COMMAND, end - len(command), start + len(line.rstrip())


def _is_command(quoted: str) -> bool:
    words = quoted.removeprefix("$ ").split()
    while words and _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    if len(words) < 2:
        return False
    return bool(_PROGRAM.fullmatch(words[0])) or (words[0].islower() and any(map(_FLAG.fullmatch, words[1:])))


def _identifiers(text: str) -> Iterator[Found]:
    for match in _BACKTICKS.finditer(text):
        if _QUOTED_NAME.fullmatch(match[1]):
            yield EntityKind.IDENTIFIER, *match.span(1)
    for match in _NAME_RUN.finditer(text):
        # Most runs are plain words, and text before an at sign is a mailbox.
        if (match[0][1:].islower() and match[0].isalpha()) or text[match.end() : match.end() + 1] == "@":
            continue
        # A test is named by its file and itself: the file is found as a file.
        head, joint, rest = match[0].partition("::")
        name = rest if joint and _is_file_name(head) else match[0]
        if _is_code_name(name):
            yield EntityKind.IDENTIFIER, match.end() - len(name), match.end()


def _is_code_name(run: str) -> bool:
    if run.endswith("()"):
        return True
    parts = _JOINTS.split(run)
    if any(_is_coined(part) for part in parts):
        return True
    if len(parts) == 1:
        return False
    if "::" in run or "->" in run:
        return True
    # A capital after the point is usually a sentence without a space.
    return all(len(part) > 1 and part[1:].islower() for part in parts) and all(
        part.islower() and not _TOP_LEVEL.fullmatch(part) for part in parts[1:]
    )


def _is_coined(word: str) -> bool:
    dunder = len(word) > 4 and word.startswith("__") and word.endswith("__")
    return dunder or "_" in word.strip("_") or (bool(_CAMEL.match(word)) and not _SURNAME.fullmatch(word))


def _by_pattern(kind: EntityKind, pattern: re.Pattern[str], read: Callable[[re.Match[str]], str | None]) -> _Rule:
    """Return a rule by which a match of a pattern is an entity; `read` returns its name, None for no entity."""

    def find(text: str) -> Iterator[Found]:
        matches = ((match.span(), read(match)) for match in pattern.finditer(text))
        return ((kind, *span, name) for span, name in matches if name is not None)

    return find


_RULES: tuple[_Rule, ...] = (
    _urls,
    _files,
    _by_pattern(EntityKind.PULL_REQUEST, _PULL, lambda match: match[1] or match[2]),
    _by_pattern(EntityKind.TICKET, _VULNERABILITY, lambda match: match[0]),
    _by_pattern(EntityKind.TICKET, _TICKET_KEY, _read_ticket_key),
    _by_pattern(EntityKind.TICKET, _RECORD, lambda match: f"{match[1]}-{match[2]}"),
    _tickets,
    _by_pattern(EntityKind.DATE, DATE, iso_date),
    _packages,
    _by_pattern(EntityKind.VERSION, _VERSION, _read_version),
    _by_pattern(EntityKind.PORT, _PORT, lambda match: match[1] if 0 < int(match[1]) <= _MAX_PORT else None),
    _commands,
    _identifiers,
    find_known_names,
    find_component_names,
    find_marked_names,
)
