"""Split a line of a POSIX shell into its commands: quotations, variables, substitutions, here-documents and pipes.

Variables that the line sets are replaced by their values; all values of a loop count. The value of an unknown variable
or substitution stays in its word as `$NAME` or `$()`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

# Maximum nesting of substitutions, alternatives of a word, characters that variables may add, and here-documents.
DEEPEST = 8
MOST_ALTERNATIVES = 8
MOST_EXPANDED = 16_000
MOST_DOCUMENTS = 16
UNKNOWN = "$()"
_PLAIN = re.compile(r"[^\s'\"\\`$;|&()<>#{]+")
_QUOTED = re.compile(r"[^\"\\`$]+")
_ANSI = re.compile(r"((?:[^'\\]|\\.)*+)'", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_REDIRECTION = re.compile(r"<<<|<<-?|<>|>>|>\||>&|<&|[<>]|&>>?")
_DESCRIPTOR = re.compile(r"\d+-?|-")
_DELIMITER = re.compile(r"[^\S\n]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|(\\?[^\s;|&()<>'\"]+))")
_VARIABLE = re.compile(r"(\w+)|\{(\w+)(?::?-([^{}$]*))?\}")
_BRACES = re.compile(r"\{([^\s{}'\"$`]*,[^\s{}'\"$`]*)\}")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
_DECLARES = frozenset(("export", "declare", "local", "readonly", "typeset"))
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
Variables = dict[str, tuple[str, ...]]


@dataclass(slots=True)
class ShellCommand:
    """A simple command: its words, the files that it writes and reads, and the text of its standard input."""

    words: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    script: str = ""
    source: "ShellCommand | None" = None


def split_shell_commands(line: str, assignments: Iterable[str] = ()) -> list[ShellCommand]:
    """Return the commands of a line, those of substitutions before the command that contains them.

    `assignments` are the variables of the commands before, as `NAME=value`.
    """
    return _Parser(line, _read_assignments(assignments), set(), DEEPEST).parse()


def _read_assignments(words: Iterable[str]) -> Variables:
    matches = filter(None, map(_ASSIGNMENT.fullmatch, words))
    return {match[1]: (match[2],) for match in matches}


class _Parser:
    # Inner parsers share the variables, and the marks of quotations and here-documents without an end: each is
    # searched for once, which keeps the time linear.
    def __init__(self, text: str, variables: Variables, unclosed: set[str], depth: int, at: int = 0) -> None:
        self._text = text
        self.at = at
        self._depth = depth
        self._variables = variables
        self._unclosed = unclosed
        self._left = MOST_EXPANDED
        self._commands: list[ShellCommand] = []
        self._documents: list[tuple[ShellCommand, str, bool]] = []
        self._word: list[str] | None = None
        self._target = ""
        self._command = ShellCommand()

    def parse(self, closing: str = "") -> list[ShellCommand]:
        """Return the commands up to the closing bracket or the end of the text."""
        open_brackets = 0
        while self.at < len(self._text):
            character = self._text[self.at]
            if character == ")" and closing and not open_brackets:
                self.at += 1
                break
            open_brackets += {"(": 1, ")": -1 if open_brackets else 0}.get(character, 0)
            self._read(character)
        self._end_command()
        for command in self._commands:
            command.script = command.script or ("" if command.source is None else _find_output(command.source))
        return self._commands

    def _read(self, character: str) -> None:
        text, at = self._text, self.at
        if (plain := _PLAIN.match(text, at)) is not None:
            self.at = plain.end()
            self._add(plain[0])
        elif character.isspace() and character != "\n":
            self.at += 1
            self._end_word()
        elif (redirection := _REDIRECTION.match(text, at)) is not None:
            self._redirect(redirection)
        elif character in ";|&()\n":
            self._separate(character)
        elif character == "#" and self._word is None:
            end = text.find("\n", at)
            self.at = len(text) if end < 0 else end
        elif character == "{" and (braces := _BRACES.match(text, at)) is not None:
            self.at = braces.end()
            self._add_alternatives(braces[1].split(","))
        elif character in "\\'\"`$":
            self._read_quotation(character)
        else:
            self.at += 1
            self._add(character)

    def _read_quotation(self, character: str) -> None:
        text, at = self._text, self.at
        self.at += 1
        if character == "\\":
            if text[at + 1 : at + 2] != "\n":
                self._add(text[at + 1 : at + 2])
            self.at += 1
        elif character == "'":
            end = text.find("'", at + 1)
            if end >= 0:
                self._add(text[at + 1 : end])
                self.at = end + 1
        elif character == '"':
            self._read_double_quotation()
        elif character == "$" and text[at + 1 : at + 2] == '"':
            pass
        elif text.startswith("$'", at) and (quoted := _ANSI.match(text, at + 2)) is not None:
            self.at = quoted.end()
            self._add(_unescape(quoted[1]))
        else:
            self._read_substitution(character, is_quoted=False)

    def _read_double_quotation(self) -> None:
        """Read a quotation; without an end, the mark is none."""
        if '"' in self._unclosed:
            return
        start, word, commands = self.at, self._word, len(self._commands)
        self._add("")
        while self.at < len(self._text):
            character = self._text[self.at]
            if (plain := _QUOTED.match(self._text, self.at)) is not None:
                self.at = plain.end()
                self._add(plain[0])
                continue
            self.at += 1
            if character == '"':
                return
            if character == "\\":
                escaped = self._text[self.at : self.at + 1]
                self._add("" if escaped == "\n" else escaped if escaped in '"\\$`' else f"\\{escaped}")
                self.at += 1
            else:
                self._read_substitution(character, is_quoted=True)
        if '"' in self._unclosed:
            # Commands in the quotation have read the rest of the text.
            return
        self._unclosed.add('"')
        self.at, self._word = start, word
        del self._commands[commands:]

    def _read_substitution(self, character: str, *, is_quoted: bool) -> None:
        """Read what follows a `$` or a backtick: a variable, or a command whose output is the value."""
        text, at = self._text, self.at
        variable = _VARIABLE.match(text, at) if character == "$" else None
        if variable is not None:
            self.at = variable.end()
            name, default = variable[1] or variable[2], variable[3]
            values = self._variables.get(name) or (f"${name}" if default is None else default,)
        elif character == "$" and text.startswith("(", at):
            values = (self._read_inner(),)
        elif character == "`" and (end := text.find("`", at)) >= 0:
            inner = self._make_inner(text[at:end]).parse() if self._depth else []
            self.at = end + 1
            self._commands += inner
            values = (_find_value(inner),)
        else:
            values = ("$",) if character == "$" else ("",)
        size = sum(map(len, values))
        self._left -= size
        if self._left < 0:
            values = (UNKNOWN,)
        if is_quoted or len(values) > 1 or not values[0].split():
            self._add_alternatives(values)
        else:
            self._add_split(values[0])

    def _add_split(self, value: str) -> None:
        first, *others = value.split()
        self._add(first)
        for part in others:
            self._end_word()
            self._add(part)

    def _read_inner(self) -> str:
        """Read the commands in brackets; return their output if it is known."""
        start = self.at + 1
        if not self._depth:
            self.at = start
            return UNKNOWN
        parser = self._make_inner(self._text, start)
        inner = parser.parse(")")
        self.at = parser.at
        self._commands += inner
        return _find_value(inner)

    def _make_inner(self, text: str, at: int = 0) -> "_Parser":
        return _Parser(text, self._variables, self._unclosed, self._depth - 1, at)

    def _redirect(self, match: re.Match[str]) -> None:
        operator = match[0]
        if self._word is not None and all(part.isdecimal() for part in self._word):
            # The number of a file: `2>`.
            self._word = None
        self._end_word()
        self.at = match.end()
        if operator in ("<<", "<<-"):
            delimiter = _DELIMITER.match(self._text, self.at)
            if delimiter is not None and len(self._documents) < MOST_DOCUMENTS:
                name = delimiter[1] or delimiter[2] or delimiter[3].lstrip("\\")
                is_literal = delimiter[3] is None or delimiter[3].startswith("\\")
                self._documents.append((self._command, name, is_literal))
                self.at = delimiter.end()
        elif operator[-1] == "&" and (number := _DESCRIPTOR.match(self._text, self.at)) is not None:
            self.at = number.end()
        elif operator in "<>" and self._text.startswith("(", self.at):
            self._command.script = self._read_inner()
            self._add("/dev/stdin")
        else:
            self._target = operator

    def _separate(self, character: str) -> None:
        is_double = character in "|&" and self._text.startswith(character * 2, self.at)
        self.at += 2 if is_double else 1
        self._end_command()
        if character == "|" and not is_double and self._commands:
            self._command.source = self._commands[-1]
        if character == "\n":
            self._read_documents()

    def _read_documents(self) -> None:
        for command, name, is_literal in self._documents:
            if name in self._unclosed:
                continue
            end = re.compile(rf"^[^\S\n]*{re.escape(name)}[^\S\n]*$", re.MULTILINE).search(self._text, self.at)
            if end is None:
                # Without its end, the rest of the text may as well be commands.
                self._unclosed.add(name)
                continue
            body = self._text[self.at : end.start()]
            self.at = end.end()
            command.script = body
            if not is_literal and ("$(" in body or "`" in body) and self._depth:
                quotation = '"' + body.replace('"', '\\"') + '"'
                # The inner commands run before the command that reads the document.
                self._commands += self._make_inner(quotation).parse()[:-1]
        self._documents = []

    def _add(self, part: str) -> None:
        self._word = [part] if self._word is None else [before + part for before in self._word]

    def _add_alternatives(self, values: Iterable[str]) -> None:
        made = [before + value for before in self._word or [""] for value in values]
        self._word = made[:MOST_ALTERNATIVES]

    def _end_word(self) -> None:
        if self._word is None:
            return
        words, self._word = self._word, None
        target, self._target = self._target, ""
        if target == "<<<":
            self._command.script = words[0]
        elif ">" in target:
            self._command.outputs += [word for word in words if word != "/dev/null"]
        elif target:
            self._command.inputs += words
        elif not self._command.words and (alias := self._variables.get(f"alias {words[0]}")) is not None:
            self._command.words += alias[0].split()
        else:
            self._command.words += words

    def _end_command(self) -> None:
        self._end_word()
        command = self._command
        if not (command.words or command.outputs):
            return
        if command.words != ["}"]:
            self._commands.append(command)
            self._remember(command.words)
        self._command = ShellCommand()

    def _remember(self, words: list[str]) -> None:
        """Remember the variables that a command sets for the commands after it."""
        if words[:1] == ["for"] and words[2:3] == ["in"]:
            self._variables[words[1]] = tuple(words[3 : 3 + MOST_ALTERNATIVES])
        elif words[:1] == ["alias"]:
            aliases = _read_assignments(words[1:])
            self._variables.update((f"alias {name}", command) for name, command in aliases.items())
        elif words and (words[0] in _DECLARES or all(map(_ASSIGNMENT.fullmatch, words))):
            self._variables.update(_read_assignments(words))


def _find_value(commands: list[ShellCommand]) -> str:
    output = _find_output(commands[-1]).strip() if commands else ""
    return output or UNKNOWN


def _find_output(command: ShellCommand) -> str:
    """Return the output of a command that only prints its arguments or its input, otherwise nothing."""
    words = command.words
    if words[:1] == ["echo"]:
        return " ".join(word for word in words[1:] if word not in ("-n", "-e", "-en", "-ne"))
    if words[:1] == ["printf"]:
        return " ".join(map(_unescape, words[1:]))
    prints_input = words[:1] in (["cat"], ["tee"]) and all(word in ("-", "/dev/stdin") for word in words[1:])
    return command.script if prints_input else ""


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), text)
