"""What tells the passing from the lasting in text that nobody asked to keep: small closed classes in nine languages.

A language that no class knows loses nothing: its text is judged by its substance and its shape.
"""

import re
from collections.abc import Set as AbstractSet

# Words of a reason, a rule, a decision or a way out.
_LASTING_WORDS = frozenset(
    """
    because always never must instead decide decided decides decision prefer prefers preferred lesson since require
    requires workaround agreed chose switched unless beware solved otherwise
    weil immer nie niemals statt entschieden beschlossen muss müssen ursache sonst damit
    porque siempre nunca decidimos debe causa parce toujours jamais décidé doit sinon sempre deve precisa
    всегда никогда нельзя вместо решили нужно причина иначе завжди ніколи замість вирішили треба інакше
    """.split()  # noqa: SIM905 - readable as words
)
_LASTING_PHRASES = (
    *("root cause", "caused by", "turned out", "turns out", "so that", "don't", "do not ", "the reason", "the fix"),
    *("fixed by", "fixed in", "fixed with", "fails when", "fails if", "fails with", "fails on", "needs to", "lives in"),
    *("only when", "only if", "only works", "only after", "the bug was", "stored in", "the trick"),
    *("lag an ", "nur wenn", "en lugar de", "hay que", "au lieu de", "il faut", "em vez de"),
)
_LASTING_OTHER = (
    *("потому что", "из-за", "тому що", "因为", "总是", "必须", "不要", "而不是", "决定", "原因", "导致", "改用"),
    *("ため", "必ず", "しない", "代わり", "決定", "なので"),
)

# Words that put something off or leave it open.
_LATER_WORDS = frozenset(
    """
    todo fixme xxx wip tbd maybe perhaps hmm hmmm später vielleicht luego quizás depois talvez
    потом позже наверное пізніше мабуть
    """.split()  # noqa: SIM905 - readable as words
)
_LATER_PHRASES = (
    *("not sure", "no idea", "look later", "it later", "this later", "for now", "keine ahnung"),
    *("plus tard", "peut-être", "может быть", "稍后", "以后再", "也许", "後で", "たぶん"),
)

# How a text begins that tells what its speaker is about to do, greets or thanks, or asks for something.
_INTENT = (
    r"let(?:'s| me| us)\b|i(?:'ll| will| need to| should| want to| would)\b"
    r"|i(?:'m| am) \w{1,20}ing\b|now (?:i|let|to|that)\b|next[, ]"
    r"|first[, ]+(?:i|let)|going to\b|time to\b"
    r"|(?:looking|checking|running|reading|searching|trying|starting|working|continuing|proceeding|waiting|moving) "
    r"|(?:good|great|perfect|alright|excellent)[,.!]* (?:now|let|i|the tests? pass)"
    r"|ich (?:werde|schaue|sehe|prüfe|lese|mache|führe)\b|lass mich\b|jetzt\b|als nächstes\b"
    r"|voy a\b|déjame\b|ahora\b|estoy\b|je vais\b|laisse-moi\b|maintenant\b|vou\b|deixe-me\b|agora\b"
    r"|сейчас\b|теперь\b|давай|посмотрю\b|проверю\b|я (?:сейчас|проверю|посмотрю)|зараз\b|тепер\b|подивлюся\b"
    r"|让我|我来|我先|现在|接下来|正在|これから|まず|次に"
)
_POLITE = (
    r"hi\b|hello\b|hey\b|thanks?\b|thank you|good (?:morning|evening|afternoon|night)|see you|bye\b|you're welcome"
    r"|sounds good|(?:great|nice|cool|awesome|wonderful)[,!.]|how are you|alles klar|hallo\b|guten (?:morgen|tag|abend)"
    r"|danke|vielen dank|tschüss|hola\b|buenos|gracias|bonjour|merci|salut\b|olá|oi\b|obrigad|привет|здравствуй"
    r"|спасибо|доброе|добрый|привіт|дякую|你好|谢谢|早上好|再见|こんにちは|ありがとう|お疲れ"
)
_REQUEST = (
    r"please\b|(?:can|could|would|will) you\b|show me\b|help me\b|explain\b|tell me\b|give me\b|what\b|why\b|where\b"
    r"|how (?:do|can|to)\b|(?:fix|add|refactor|rewrite|implement|rename|create|update|delete|check|look|try|run|open"
    r"|review|write|clean up|continue|go ahead|make|remove) (?:the|this|that|it|a|an|all|up|at|into|again"
    r"|my|some|with|on"
    r"|in)\b|bitte\b|kannst du|könntest du|zeig|mach\b|puedes\b|por favor|muéstra|podrías|peux-tu|pouvez|s'il te|montre"
    r"|pode\b|você pode|mostre|пожалуйста|можешь|покажи|сделай|исправь|добавь|будь ласка|можеш|додай"
    r"|请|能不能|帮我|可以帮|你能|教えて|お願い"
)
_CONSENT = (
    r"ok(?:ay)?|yes|sure|done|got it|fertig|erledigt|listo|hecho|vale|d'accord|voilà|pronto|feito|готово|хорошо|добре"
    r"|好的|完成|はい"
)
_OPENING = re.compile(
    rf"\W{{0,4}}(?:(?:{_CONSENT})(?:\W{{1,3}}|$))?"
    rf"(?:(?P<intent>{_INTENT})|(?P<polite>{_POLITE}|$)|(?P<request>{_REQUEST}))"
)
_ASKS = re.compile(r"[?？؟]\W{0,9}\Z")

# A line that a program wrote.
_LEVEL = r"\[?(?:debug|info|warn(?:ing)?|error|trace|notice)(?:\]|: )|npm (?:warn|err|notice)"
_TRACE = (
    r"traceback \(|file \"[^\"\n]{1,200}\", line \d|at \S{1,200} ?\(?\S{0,200}:\d|caused by: \S|\.{3} \d+ more"
    r"|\w{1,60}(?:error|exception): .{0,200}$|exit (?:code|status)|process exited"
)
_REPORT = (
    r"(?:pass|fail|ok|skip(?:ped)?) \S{0,200}[./]\w|[✓✔✗✘●⠋⠙⠹⠸]|[=\-_#*~+│├└]{4}"
    r"|[\d.,]{1,12}\s?(?:%|[kmg]i?b\b)"
    r"|\[[=#>\-. ]{3}|\d{1,9} (?:passed|failed|tests?|packages|files? changed|insertions|warnings|errors)\b"
    r"|(?:tests?|test suites|snapshots|time|duration): .{0,40}\d|ran \d{1,6} tests"
)
_PROGRESS = (
    r"(?:compiling|downloading|downloaded|installing|installed|collecting|building|fetching|resolving|unpacking|linking"
    r"|extracting|loading|processing|receiving|resolved|added|removed|audited|up to date|finished|generating"
    r"|using cached|successfully|requirement already|preparing|setting up|bundling|transforming|running"
    r"|updating|waiting)"
    r" .{0,80}(?:\d|\.\.\.|…|$)"
)
_TOOLS = (
    r"[$>#%❯]\s|\[?\d{4}-\d\d-\d\d[t ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|[-dl][rwx-]{9} |total \d{1,9}$|diff --git"
    r"|index [0-9a-f]{7}|@@ -|[+-]{3} [ab]/|on branch |your branch |nothing to commit|commit [0-9a-f]{7,40}\b"
    r"|[\]\[{}(),;]{1,20}$|[!-~]++$"
)
_NOISE = re.compile(rf"\s*+(?:{_TOOLS}|{_LEVEL}|{_TRACE}|{_REPORT}|{_PROGRESS})")

_KEPT = {"intent": 0.25, "polite": 0.25, "request": 0.4}
_QUESTION_KEEPS, _LATER_KEEPS = 0.35, 0.4


def is_lasting(text: str, words: AbstractSet[str]) -> bool:
    """Tell whether a text in lower case gives a reason, a rule, a decision or a way out."""
    if not _LASTING_WORDS.isdisjoint(words) or any(phrase in text for phrase in _LASTING_PHRASES):
        return True
    return not text.isascii() and any(phrase in text for phrase in _LASTING_OTHER)


def kept_share(text: str, words: AbstractSet[str], *, lasting: bool, answers: bool) -> float:
    """Return the share of a lower-case text's worth that outlives the moment; `answers` if it answers its question."""
    kept = 1.0 - _noise_share(text)
    opening = _OPENING.match(text)
    if opening is not None and not (lasting or (answers and opening.lastgroup == "request")):
        kept *= _KEPT[str(opening.lastgroup)]
    if not answers and _ASKS.search(text, max(0, len(text) - 10)):
        kept *= _QUESTION_KEEPS
    if not lasting and _puts_off(text, words):
        kept *= _LATER_KEEPS
    return kept


def _puts_off(text: str, words: AbstractSet[str]) -> bool:
    return not _LATER_WORDS.isdisjoint(words) or any(phrase in text for phrase in _LATER_PHRASES)


def _noise_share(text: str) -> float:
    """Return the share of the text's lines, by length, that a program wrote."""
    lines = text.split("\n")
    noise = sum(len(line) for line in lines if _NOISE.match(line))
    return noise / max(1, len(text) - len(lines) + 1)
