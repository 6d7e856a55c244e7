"""What a sentence does: forbid or correct, tell of a failure, tell of what ended one; closed classes in nine languages.

A language that no class knows is told by nothing here: what is not recognised proposes no lesson.
"""

import re
from functools import cache

# How a person begins who corrects somebody, or says that it was said before.
_CORRECTION = (
    r"(?:no|nope)(?:[,.!:;]| [—–-])|(?:please )?(?:don't|do not|never|stop (?!at\b|by\b)\w+ing)\b"
    r"|that's (?:wrong|not)\b|wrong[,.!:]|not \w+(?: \w+){0,4}, but\b"
    r"|nein[,.!]|bitte (?:nicht|kein|nie)|niemals\b|hör auf\b|nicht \w+(?: \w+){0,4}, sondern\b"
    r"|non[,.!]|ne .{1,30}\b(?:pas|jamais|plus)\b|jamais\b|arrête\b|no[,.!]|nunca\b|deja de\b|não[,.!]|pare de\b"
    r"|нет[,.!]|никогда\b|не (?:надо|нужно|используй|делай|пиши|трогай)\b|перестань\b"
    r"|ні[,.!]|ніколи\b|не (?:треба|потрібно|використовуй|роби|пиши|чіпай)\b|перестань\b"
    r"|不[要对是]|别|错了|違う|いや、|やめて"
)
_REPROACH = (
    r"\b(?:i|we)(?:'ve| have| had)? (?:already |just )?(?:told|asked) you\b"
    r"|\bi(?:'ve)? (?:already )?said (?:that|this|it|not|to)\b"
    r"|\bas i said\b|\bhow (?:many times|often) (?:do|must|have|should)\b|\byou(?:'ve)? (?:did|done) it again\b"
    r"|\bich hab(?:e)? (?:dir |euch )?(?:doch |schon |bereits ){0,3}gesagt\b|\bwie gesagt\b|\bwie oft\b"
    r"|\bje (?:t'ai|vous ai) (?:déjà )?(?:dit|demandé)|\bya (?:te |os |se )?(?:lo )?(?:dije|he dicho|pedí)"
    r"|\bjá (?:te |lhe )?(?:disse|pedi)|я (?:же |тебе |уже )+(?:говорил|сказал|просил)"
    r"|я (?:ж |же |тобі |вже )+(?:казав|сказав|просив)|我(?:已经)?(?:说|告诉)过|言った(?:でしょ|よね|はず)"
)
_INSTEAD = (
    r"^(?:please )?(?:use|run|take|call|put|write|ask|prefer) .{2,80}\b(?:instead(?: of)?|not|rather than) "
    r"|^(?:nimm|benutze|verwende) .{2,80}\bstatt|^(?:utilise|prends) .{2,80}\bau lieu|^usa .{2,80}\ben (?:lugar|vez) de"
    r"|^используй .{2,80}\bвместо|^використовуй .{2,80}\bзамість|用.{1,40}(?:而不是|代替)"
)

_FAILURE = (
    r"\bfail(?:ed|s|ing|ure)?\b|\bcrash(?:ed|es|ing)?\b|\bbroke(?:n)?\b|\btim(?:ed|es) out\b|\bhung\b|\bhangs\b"
    r"|\berrors? (?:out|with|in)\b"
    r"|\b(?:does not|doesn't|did not|didn't) (?:work|start|build|compile|pass)\b"
    r"|(?-i:\b[A-Z]\w{0,60}(?:Error|Exception)\b)|\bexit code [1-9]"
    r"|\bpanic(?:ked|s)?\b|\bsegfault|\bgot stuck\b"
    r"|\bfehlgeschlagen\b|\bschlägt fehl\b|\babgestürzt\b|\bbricht ab\b|\béchou(?:é|e|ait)\b|\bplant(?:é|e|ait)\b"
    r"|\bfall(?:ó|a|aba)\b|\bfalh(?:ou|a|ava)\b|\bупал[аои]?\b|\bпадает\b|\bне работает\b|\bвпа(?:в|ла|ло)\b|\bпадає\b"
    r"|\bне працює\b|失败|报错|崩溃|失敗|エラー|落ちた"
)
_FIX = (
    r"\bfix(?:es)?\b(?! (?:is|was)? ?(?:needed|missing|pending))|(?<!\bthe )(?<!\ba )\bfixed\b"
    r"|\bsolved\b|\bcured\b|\bresolved\b"
    r"|\broot cause\b|\bthe cause was\b"
    r"|\bturn(?:ed|s) out\b|\bcaused by\b|\bworks (?:now|again)\b|\bpass(?:es)? (?:now|again)\b|\bthe reason was\b"
    r"|\bbehoben\b|\bgelöst\b|\bursache war\b|\blag an\b|\bläuft wieder\b|\bcorrigé\b|\brésolu\b|\bla cause était\b"
    r"|\barregl(?:é|ado|amos)\b|\bsolucion(?:é|ado)\b|\bla causa era\b|\bcorrigi(?:do|mos)?\b|\bresolvid[oa]\b"
    r"|\ba causa era\b"
    r"|\bисправил\w*|\bпочинил\w*|\bпричина (?:была|в том)|\bвиправи\w*|\bполагоди\w*|\bпричина (?:була|в тому)"
    r"|修好|解决了|原因是|修复|直した|直りました|原因は|解決"
)
_NEGATED_FIX = re.compile(
    r"\b(?:not|n't|never|cannot|todo|nicht|noch|pas|no|não|не|ні|should|must|until|bis|once|needs?|try(?:ing)?|to)"
    r" (?:\w+ ){0,2}(?:be )?"
    r"(?:fix|solve|resolve|behoben|gelöst|corrigé|résolu|исправ|виправ)",
    re.IGNORECASE,
)


# One of these stands in every text that a pattern finds: looking for them is twenty times faster than the pattern.
_FAILURE_HEADS = (
    *("fail", "crash", "broke", "time", "hung", "hang", "error", "exception", "exit code", " not ", "n't ", "panic"),
    *(
        "segfault",
        "stuck",
        "fehl",
        "abgest",
        "bricht ab",
        "échou",
        "plant",
        "fall",
        "falh",
        "упал",
        "пада",
        "не работает",
    ),
    *("не работает", "впа", "не працює", "失败", "报错", "崩溃", "失敗", "エラー", "落ちた"),
)
_REPROACH_HEADS = (
    *("you", "said", "how ", "gesagt", "wie ", "je ", "dije", "dicho", "ped", "disse", "говорил", "сказал", "просил"),
    *("казав", "просив", "说过", "告诉过", "言った"),
)


def corrects(sentence: str) -> bool:
    """Tell whether a person corrects, forbids, or reminds of what was said before."""
    text = _plain(sentence)
    if _begins(_CORRECTION).match(text) or _holds(_INSTEAD).search(text):
        return True
    return _may_hold(text, _REPROACH_HEADS) and bool(_holds(_REPROACH).search(text))


def fails(text: str) -> bool:
    """Tell whether a text tells of something that went wrong."""
    plain = _plain(text)
    return _may_hold(plain, _FAILURE_HEADS) and bool(_holds(_FAILURE).search(plain))


def fixes(text: str) -> bool:
    """Tell whether a text tells what ended a failure, or what it came from."""
    plain = _plain(text)
    return bool(_holds(_FIX).search(plain)) and not _NEGATED_FIX.search(plain)


def _may_hold(text: str, heads: tuple[str, ...]) -> bool:
    lowered = text.lower()
    return any(head in lowered for head in heads)


def _plain(text: str) -> str:
    return text.replace("\u2019", "'").lstrip(" -*>\"'“„«(")


@cache
def _begins(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{words})", re.IGNORECASE)


@cache
def _holds(words: str) -> re.Pattern[str]:
    return re.compile(words, re.IGNORECASE)
