"""The closed lists of words by which edges between memories are found."""

import re
from typing import Final

from pipeline.text.similarity.vocabulary import FOREIGN
from pipeline.text.tokens import search_tokens


def _stemmed(words: str) -> frozenset[str]:
    return frozenset(words.split()) | frozenset(search_tokens(words))


FOREIGN_SMALL: Final = FOREIGN | _stemmed(
    "alt alten alter altes neu neuen neue wir jetzt nun seit ab im am vom beim wird werden hat haben ist mehr als noch "
    "no not für "
    "ahora antiguo antigua viejo vieja ya nuestro nuestra son está están ancien ancienne notre nos est maintenant "
    "sont ont n "
    "antigo antiga velho agora nosso nossa está são foi на с со в из и для по от до к мы мой это теперь старый старого "
    "старая старую был была было з із зі й та ми це тепер старий старого стару у за що як але не au à vers"
)

# Words that say next to nothing of what a text is about; stemmed as the texts are.
GENERIC: Final = _stemmed(
    "use used uses using user run runs running keep kept store stored stores go goes went do does make made have "
    "need needs get gets set now old new former previous legacy current currently own anymore longer any more "
    "instead place move moved switch switched migrate migrated change changed replace replaced drop dropped since "
    "nutzen benutzen verwenden verwendet läuft laufen nicht ersetzt umgestellt gewechselt "
    "usamos usa utilizamos utilise utilisons passé migré usar используем использует используется "
    "перешли заменили вместо більше використовуємо перейшли замінили замість больше"
)

# What is asked, doubted, planned, denied or told of somebody else replaces and explains nothing.
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

# What never was cannot be replaced; in what explains a failure it may be the cause.
NEVER: Final = re.compile(r"\b(?:never|niemals|nunca|jamais|никогда|ніколи)\b", re.IGNORECASE)

# What went wrong.
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

# What says by itself that a cause was found.
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

# What gives a reason, of anything.
GIVES_REASON: Final = re.compile(
    r"\b(?:because(?: of)?|due to|weil|wegen|aufgrund|porque|debido a|a causa de|por culpa de|parce qu\w+|à cause d\w+"
    r"|en raison d\w+|devido a\w*|por causa d\w+|потому что|из-за|так как|тому що|через те|бо)\b",
    re.IGNORECASE,
)
