"""The word lists that find edges between memories."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from pipeline.text.similarity.vocabulary import WORDS
from pipeline.text.tokens import search_tokens


def _stem_words(words: str) -> frozenset[str]:
    return frozenset(words.split()) | frozenset(search_tokens(words))


FOREIGN_SMALL: Final = WORDS["foreign"] | _stem_words(
    "alt alten alter altes neu neuen neue wir jetzt nun seit ab im am vom beim wird werden hat haben ist mehr als noch "
    "no not für "
    "ahora antiguo antigua viejo vieja ya nuestro nuestra son está están ancien ancienne notre nos est maintenant "
    "sont ont n "
    "antigo antiga velho agora nosso nossa está são foi на с со в из и для по от до к мы мой это теперь старый старого "
    "старая старую был была было з із зі й та ми це тепер старий старого стару у за що як але не au à vers"
)

# Words that hardly describe the subject of a text; stemmed like the texts.
GENERIC: Final = _stem_words(
    "use used uses using user run runs running keep kept store stored stores go goes went do does make made have "
    "need needs get gets set now old new former previous legacy current currently own anymore longer any more "
    "instead place move moved switch switched migrate migrated change changed replace replaced drop dropped since "
    "nutzen benutzen verwenden verwendet läuft laufen nicht ersetzt umgestellt gewechselt "
    "usamos usa utilizamos utilise utilisons passé migré usar используем использует используется "
    "перешли заменили вместо більше використовуємо перейшли замінили замість больше"
)

# Questions, doubts, plans, denials and reports about other people replace and explain nothing.
HEDGES: Final = re.compile(
    r"\b(?:should|could|would|might|(?-i:may)|maybe|perhaps|possibly|probably|likely|seems?|suspect\w*|consider\w*|propos\w+"
    r"|discuss\w*|evaluat\w+|tried|trial|rejected|against|unless|if|whether|wants? to|wanted to|plan(?:s|ned)? to"
    r"|going to|will|shall|hope\w*|think|thought|unclear|unknown|do not|don't|did not|didn't|not (?:caused|because|due)"
    r"|vielleicht|könnte|sollte|sollten|würde|wohl|vermutlich|falls|ob|erwägen|planen|abgelehnt|quizás|quizá"
    r"|podría|podríamos|deberíamos|si|planeamos|tal vez|peut-être|pourrait|pourrions|devrait|devrions"
    r"|talvez|poderia|poderíamos|deveríamos|se calhar|может|возможно|наверное|если|планируем|стоит ли"
    r"|можливо|мабуть|якщо|плануємо|чи варто)\b|\?|^\s*(?:Q|F|P):",
    re.IGNORECASE,
)

# Something that never existed cannot be replaced; as an explanation of a failure it may be the cause.
NEVER: Final = re.compile(r"\b(?:never|niemals|nunca|jamais|никогда|ніколи)\b", re.IGNORECASE)

# Reports of trouble.
TROUBLE: Final = re.compile(
    r"\b(?:fail(?:s|ed|ing|ures?)?|errors?|brok(?:e|en)|breaks?|crash\w*|down|outages?|tim(?:es?|ed) out|timeouts"
    r"|slow\w*|hung|hangs?|hanging|fro(?:ze|zen)|freez\w+|paged|stuck|missing|lost|loses?|wrong|leak\w*|duplicat\w+|twice|flaky"
    r"|unreachable|refused|panick?\w*|exceptions?|bugs?|cannot|can't|stopped|stalled|corrupt\w*|dropped|drops|empty"
    r"|no \w+(?: \w+)? at all|incident|alarms?|alert\w*|late|delay\w*|reject\w+|unavailable|red|oom|killed|dead|5\d\d"
    r"|disappear\w*|spik\w+|overload\w*|rolled back|deadlock\w*|blank|garbled|lag\w*|behind|restart(?:s|ed|ing)"
    r"|fehler\w*|fehlgeschlagen|schlägt fehl|schlug fehl|abgestürzt|stürzt\w*|ausgefallen|ausfall|fällt aus|hängt|hing"
    r"|langsam\w*|kaputt|gestört|störung|fehlt\w*|doppelt|falsch\w*"
    r"|fall[aóo]\w*|error(?:es)?|caíd[ao]s?|cayó|cae|lent[oa]s?|cuelga|colgó|rot[oa]s?|duplicad\w+|perdi\w+"
    r"|erreurs?|échec|échoue\w*|échoué\w*|panne|lent(?:e|es|s)?|plante\w*|planté\w*|tombé\w*|bloqué\w*|perdu\w*"
    r"|falh\w+|erros?|queda|caiu|caíram|travou|travad\w+|partid\w+|duplicad\w+"
    r"|ошиб\w+|упал\w*|падает|падают|падал\w*|сбой|сбои|не работа\w+|завис\w*|медленн\w+|слома\w+|потерял\w*|дважды"
    r"|помилк\w+|впав|впал\w*|падає|збій|збої|не прац\w+|зависа\w*|повільн\w+|злама\w+|двічі)\b",
    re.IGNORECASE,
)

# Statements that a cause was found.
FOUND_CAUSE: Final = re.compile(
    r"\b(?:root causes?|caused by|(?:was|were) (?:the )?(?:culprit|cause)|the culprit|the cause|turn(?:ed|s) out"
    r"|trac(?:ed|ing) (?:\w+ ){0,3}to|(?:the|its) reason (?:was|is|for)|came from|comes from|boiled down to"
    r"|was to blame|ursache\w*|l(?:a|ie)gt? (?:\w+ ){0,2}(?:an|am|daran)|verursacht|stellte sich heraus"
    r"|grund (?:war|ist|dafür)|schuld (?:war|ist)|befund"
    r"|causa raíz|la causa|causad[oa]s? por|resultó|se deb(?:e|ía|ió) a|la culpa|el culpable"
    r"|la cause|cause racine|causée?s? par|s'est avéré|provenait|venait d|dû à|due à|le coupable"
    r"|a causa|causa-raiz|afinal|deveu-se|devia-se|o culpado"
    r"|причин\w+|вызван\w*|оказал\w+|виноват\w*"
    r"|причин\w+|спричинен\w*|виявил\w+|винен|винна)\b",
    re.IGNORECASE,
)

# Reasons, of anything.
GIVES_REASON: Final = re.compile(
    r"\b(?:because(?: of)?|due to|weil|wegen|aufgrund|porque|debido a|a causa de|por culpa de|parce qu\w+|à cause d\w+"
    r"|en raison d\w+|devido a\w*|por causa d\w+|потому что|из-за|так как|тому що|через те|бо)\b",
    re.IGNORECASE,
)


_OLD, _NEW = r"(?P<old>[^,;()]{2,60}?)", r"(?P<new>[^,;()]{2,60})"
_ABOUT = r"(?P<about>[^,;()]{0,60}?)"
_EN_MOVE = r"(?:mov|migrat|chang|upgrad|renam)(?:ed?|ing)|switch(?:ed|ing)?|port(?:ed|ing)"
_EN_WAS = r"(?:is|are|was|were|has been|have been|is being|are being|got)"
_EN_LET_GO = r"dropp(?:ed|ing)|abandon(?:ed|ing)|ditch(?:ed|ing)|threw out|gave up|retir(?:ed|ing)|phas(?:ed|ing) out"
_ES_MOVED = r"pasamos|migramos|cambiamos|movimos|hemos (?:pasado|migrado|cambiado|movido)"
_FR_MOVED = r"pass[ée]s?|passons|migr[ée]s?|migrons|bascul[ée]s?|chang[ée]s?"
_UK_MOVED = r"перейшли|переїхали|мігрували|переключилися|перевели|перенесли"
_DE_MOVED = r"umgezogen|umgestiegen|gewechselt|migriert|umgestellt|gewandert"
_NEXT_TO = r"(?:no longer(?! than)|nicht (?:mehr|länger)(?! als)|ya no|já não|больше не|більше не|уже не|вже не)"

# Each pattern names the old thing, and may name the new thing and the subject.
_PHRASES = (
    rf"\b(?:{_EN_MOVE})\b{_ABOUT}\bfrom {_OLD} (?:over )?to {_NEW}",
    rf"\b(?:replac(?:ed?|es|ing)|swap(?:s|ped|ping)?(?: out)?) {_OLD} (?:with|by|for) {_NEW}",
    rf"{_OLD} {_EN_WAS} (?:now )?(?:replaced|superseded) (?:with|by) {_NEW}",
    rf"\b(?:{_EN_LET_GO}) {_OLD} (?:for|in favou?r of) {_NEW}",
    rf"\b(?:instead|in place) of {_OLD}(?=$|[,;()]| (?:now|from|since|because|for|as|so|and|in|on|to|when|after)\b)",
    rf"\b(?:{_DE_MOVED}|wechseln|steigen|ziehen|migrieren)\b{_ABOUT}\bvon {_OLD} (?:auf|zu|nach|in) {_NEW}",
    rf"{_ABOUT}\bvo[nm] {_OLD} (?:auf|zu|zur|zum|nach|in) {_NEW} (?:{_DE_MOVED})\b",
    rf"{_OLD} (?:wird|werden|wurden?|haben wir) (?:jetzt |nun )?durch (?P<new>[^,;()]{{2,60}}?) (?:ersetzt|abgelöst)",
    rf"\b(?:haben|wir|hat|habe) (?:wir )?{_OLD} durch (?P<new>[^,;()]{{2,60}}?) ersetzt",
    rf"\bersetz(?:en|t) (?:wir )?{_OLD} durch {_NEW}",
    rf"\b(?:statt|anstatt|anstelle von) {_OLD}(?=$|[,;()]| (?:jetzt|nun|ab|seit|für|weil|als|und|in|im|auf)\b)",
    rf"\b(?:{_ES_MOVED})\b{_ABOUT}\bde(?:l| la| los)? {_OLD} (?:a|al) {_NEW}",
    rf"\b(?:re[e]?mplazamos|sustituimos|hemos (?:reemplazado|sustituido)|cambiamos) {_OLD} por {_NEW}",
    rf"{_OLD} (?:fue|ha sido|fueron|se ha|se) (?:reemplazad|sustituid)\w+ por {_NEW}",
    rf"\b(?:en lugar|en vez) de(?:l)? {_OLD}(?=$|[,;()]| (?:ahora|desde|para|porque|y|en)\b)",
    rf"\b(?:{_FR_MOVED})\b{_ABOUT}\b(?:de |d'|du ){_OLD} (?:à|vers|au) {_NEW}",
    rf"\bremplac(?:é|ée|és|ons) {_OLD} par {_NEW}",
    rf"{_OLD} (?:est|a été|sont|ont été) (?:désormais )?remplac\w+ par {_NEW}",
    rf"\b(?:au lieu|à la place) (?:de |d'|du ){_OLD}(?=$|[,;()]| (?:maintenant|depuis|pour|car|et|dans)\b)",
    rf"\b(?:pass[áa]mos|migr[áa]mos|mud[áa]mos)\b{_ABOUT}\bd[eoa] {_OLD} para (?:o |a )?{_NEW}",
    rf"\b(?:substituímos|troc[áa]mos) (?:o |a )?{_OLD} (?:por|pelo|pela) {_NEW}",
    rf"{_OLD} (?:foi|foram) (?:substituíd|trocad)\w+ (?:por|pelo|pela) {_NEW}",
    rf"\b(?:em vez|no lugar) d[eoa] {_OLD}(?=$|[,;()]| (?:agora|desde|para|porque|e|em)\b)",
    rf"\b(?:перешли|переехали|мигрировали|переключились|перевели|перенесли)\b{_ABOUT}\bсо? {_OLD} (?:на|в) {_NEW}",
    rf"\b(?:заменили|меняем|сменили) {_OLD} на {_NEW}",
    rf"{_OLD} (?:заменили|заменён|заменен|заменена|заменено|сменили) на {_NEW}",
    rf"\bвместо {_OLD}(?=$|[,;()]| (?:теперь|с|для|потому|и|в|на|используем|берём)\b)",
    rf"\b(?:{_UK_MOVED})\b{_ABOUT}\b(?:з|із|зі) {_OLD} (?:на|в|до) {_NEW}",
    rf"\b(?:замінили|змінили) {_OLD} на {_NEW}",
    rf"{_OLD} (?:замінили|замінено|замінений) на {_NEW}",
    rf"\bзамість {_OLD}(?=$|[,;()]| (?:тепер|з|для|бо|і|в|на|використовуємо)\b)",
)
_CUES = tuple(re.compile(phrase, re.IGNORECASE) for phrase in _PHRASES)
# Every phrase contains one of these: most sentences contain none and are skipped without trying each phrase.
_TRIGGER = re.compile(
    r"mov|switch|migr|chang|port(?:ed|ing)|upgrad|renam|repla|supersed|swap|dropp|abandon|ditch|threw|gave|retir|phas"
    r"|instead|in place|umge|gewechselt|gewandert|wechseln|steigen|ziehen|ersetz|abgelöst|statt|anstelle|pasa|cambia"
    r"|hemos|reempla|sustitu|lugar|vez|pass|bascul|rempla|lieu|à la place|mud|substitu|troc|переш|перее|мигр|перекл"
    r"|перев|перен|замен|меня|смени|вместо|перей|переї|мігр|замін|зміни|замість|longer|more|mehr|länger|ya no|já não"
    r"|plus|mais|больше не|більше не|уже не|вже не",
    re.IGNORECASE,
)
_MOVED_TO = re.compile(
    rf"\b(?:moved|switched|migrated|umgestellt auf) (?P<about>[^,;()]{{3,50}}?) (?:over )?to {_NEW}", re.IGNORECASE
)
_ENDED = re.compile(
    rf"\b{_NEXT_TO}\b|\b(?:not|n't|nicht)\b[^,;]{{1,60}}\b(?:any ?more|any longer)\b"
    r"|\bn(?:e |')[\w' -]{1,40}\bplus\b|\bnão\b[^,;]{1,50}\bmais\b",
    re.IGNORECASE,
)
_ENDS = re.compile(rf"{_NEXT_TO}|\b(?:not|nicht|any ?more|any longer|ne|plus|não|mais)\b|n't\b|\bn'", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?。])\s+|\n+")
_CLAUSE = re.compile(
    r"[,;:()–—]|\b(?:because|since|so|and|but|weil|und|aber|porque|y|pero|car|et|e|потому что|и|но|бо|тому що|і)\b"
)
_AFTER_A_NAME = re.compile(
    r"\b(?:with|in|on|at|for|from|since|after|before|which|that|mit|bei|nach|für|im|am|con|en|para|desde|avec|dans|pour"
    r"|depuis|com|em|nos?|nas?|с|в|для|з|у)\b"
)
_NAMED = re.compile(r"\w*[A-ZА-ЯЇІЄҐ]\w*|\S*[\d_./#@-]\S*")
_USES = re.compile(
    r"\b(?:use[sd]?|using|runs?|lives?|is|are|stored?|hosted|served|kept|goes?|go|on|in|via|through|with)\b",
    re.IGNORECASE,
)
MAX_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Replaced:
    """A replaced thing, as stems; its replacement and its subject, if the text names them.

    `word` is one of its words to search for. `named` tells whether it contains a name or an identifier, `whole` whether
    it is a complete statement that is no longer valid.
    """

    old: frozenset[str]
    new: frozenset[str]
    about: frozenset[str]
    word: str
    named: bool
    whole: bool = False


def stems(text: str) -> frozenset[str]:
    """Return the stems of the meaningful words."""
    return frozenset(search_tokens(text)) - FOREIGN_SMALL - GENERIC


def first_sentences(text: str) -> list[str]:
    """Split the beginning of a text into sentences."""
    return [part for part in (piece.strip(" \t.!\"'") for piece in _SENTENCE.split(text[:MAX_CHARS])) if part]


@lru_cache(maxsize=4_000)
def find_replacements(text: str) -> tuple[Replaced, ...]:
    """List the replacements that a text states."""
    sure = (sentence for sentence in first_sentences(text) if not (HEDGES.search(sentence) or NEVER.search(sentence)))
    return tuple(replaced for sentence in sure for replaced in _find_in_sentence(sentence))


def _find_in_sentence(sentence: str) -> Iterator[Replaced]:
    return _match_cues(sentence) if _TRIGGER.search(sentence) else iter(())


def _match_cues(sentence: str) -> Iterator[Replaced]:
    found_any = False
    for cue in _CUES:
        for match in cue.finditer(sentence):
            parts = match.groupdict()
            old = _last_words(parts["old"]) if match.re.pattern.startswith("(?P<old>") else parts["old"]
            replaced = _of(old, parts.get("new") or "", parts.get("about") or "")
            if replaced is not None:
                found_any = True
                yield replaced
    if found_any:
        return
    if _ENDED.search(sentence):
        for clause in _CLAUSE.split(sentence):
            if _ENDED.search(clause) and (replaced := _of(_ENDED.sub(_without_end, clause), "", "")) is not None:
                yield replace(replaced, whole=True)
        return
    if moved := _MOVED_TO.search(sentence):
        about = stems(moved["about"])
        if about and " from " not in moved[0]:
            yield Replaced(frozenset(), stems(_first_words(moved["new"])), about, _word(moved["about"]), named=False)


def _without_end(match: "re.Match[str]") -> str:
    return _ENDS.sub(" ", match[0])


def _of(old: str, new: str, about: str) -> Replaced | None:
    stem = stems(old)
    if not stem or len(stem) > 8:
        return None
    return Replaced(stem, stems(_first_words(new)), stems(about), _word(old), bool(_names(old)))


def _first_words(text: str) -> str:
    """Cut the words after a name: "NATS and saved 30 %"."""
    return " ".join(_AFTER_A_NAME.split(_CLAUSE.split(text)[0])[0].split()[:6])


def _last_words(text: str) -> str:
    """Cut the words before a name: "Since May the old Jenkins"."""
    return " ".join(_CLAUSE.split(text)[-1].split()[-6:])


def _names(text: str) -> list[str]:
    return [word for word in text.split() if _NAMED.fullmatch(word) and stems(word)]


def _word(text: str) -> str:
    words = _names(text) or [word for word in re.findall(r"\w[\w.-]*", text) if stems(word)]
    return max(words, key=len, default="").strip(".,:'\"`»«„“")


def unknown() -> float | None:
    """Return no cosine, for a workspace without vectors."""
    return None


def supersedes(newer: str, older: str, cosine: Callable[[], float | None] = unknown) -> bool:
    """Tell whether a newer text replaces a statement of an older one; the cosine is computed last."""
    return any(
        _states(older, replaced) and _same_subject(newer, older, replaced, cosine)
        for replaced in find_replacements(newer)
    )


def _states(text: str, replaced: Replaced) -> bool:
    """Tell whether a text states the old value as a fact, and does not mention the new one."""
    if replaced.new and replaced.new <= stems(text):
        return False
    for sentence in first_sentences(text):
        if not (replaced.old | (replaced.about if not replaced.old else frozenset())) <= stems(sentence):
            continue
        if "?" in sentence or HEDGES.search(sentence) or TROUBLE.search(sentence):
            continue
        if not any(known.old & replaced.old for known in _find_in_sentence(sentence)):
            return bool(replaced.old) or _USES.search(sentence) is not None
    return False


def _same_subject(newer: str, older: str, replaced: Replaced, likeness: Callable[[], float | None]) -> bool:
    cosine = likeness()
    own = stems(newer) - replaced.old - replaced.new
    shared = own & stems(older)
    near = cosine is not None and cosine >= 0.5
    if cosine is not None and cosine < 0.2:
        return False
    if not replaced.old:
        # Without an old value the complete subject must occur, and it must have at least two stems.
        return replaced.about <= stems(older) and near and len(replaced.about) >= 2
    if replaced.about:
        return bool(replaced.about & shared) or (replaced.named and len(shared) >= 2)
    if (replaced.whole and len(replaced.old) >= 2) or (replaced.named and not own):
        return True
    return len(shared) + near >= (1 if replaced.named else 2)
