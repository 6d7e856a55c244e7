"""The closed lists of words by which two memories are compared."""

# ruff: noqa: SIM905 - readable as words

from collections.abc import Iterator
from typing import Final


def _pairs(groups: str) -> Iterator[tuple[str, str]]:
    for group in groups.split(";"):
        head, *others = group.split()
        yield head, head
        yield from ((other, head) for other in others)


def _table(groups: str) -> dict[str, str]:
    return dict(_pairs(groups))


def _opposites(pairs: str) -> dict[str, set[str]]:
    table: dict[str, set[str]] = {}
    for one, other in (pair.split("/") for pair in pairs.split()):
        table.setdefault(one, set()).add(other)
        table.setdefault(other, set()).add(one)
    return table


# Function words by which English is told from other languages in Latin script.
ENGLISH: Final = frozenset(
    "the is are we of and with for to that not it i be our my an does has by this from all before after without "
    "on at".split()
)
FOREIGN: Final = frozenset(
    "der die das den dem des und ist sind nicht wir ich ein eine einen auf mit für im von zu es el los las la "
    "del de y en un "
    "una con por para que se su le les du des et est nous je au aux pour dans avec sur o os e um uma não em do "
    "da dos das ao "
    "com il lo che per di nel het een van niet".split()
)

CLITICS: Final = {
    "can't": ("can", "not"),
    "cannot": ("can", "not"),
    "won't": ("will", "not"),
    "n't": ("not",),
    "'re": ("are",),
    "'m": ("am",),
    "'ve": ("have",),
    "'ll": ("will",),
    "'d": ("would",),
    "'s": (),
}
PHRASES: Final = {
    ("no", "longer"): ("not", "longer"),
    ("make", "sure"): ("ensure",),
    ("in", "order"): (),
    **dict.fromkeys((("have", "to"), ("has", "to"), ("need", "to"), ("needs", "to")), ("must",)),
    **dict.fromkeys((("due", "to"), ("because", "of")), ("because",)),
    **dict.fromkeys((("rather", "than"), ("instead", "of")), ("instead",)),
    ("would", "like"): ("want",),
    ("set", "up"): ("setup",),
}
PHRASE_HEADS: Final = frozenset(head for head, _ in PHRASES)

PERSONS: Final = {
    form: person
    for person, forms in {
        "i": "i me my mine myself",
        "we": "we",
        "our": "our",
        "us": "us ourselves",
        "you": "you your yours",
        "he": "he him his himself",
        "she": "she her hers herself",
        "they": "they them their theirs",
        "this": "this these",
        "that": "those",
    }.items()
    for form in forms.split()
}
# Persons that a light rewording adds or leaves out: "we use" and "is used", "our docs" and "the docs".
IMPERSONAL: Final = frozenset({"we", "our", "this"})

BEING: Final = frozenset("is are am be was were been being gets get got".split())
HELPING: Final = frozenset("do does did have has had having".split())
DOING: Final = frozenset("do does did".split())
AUXILIARY: Final = frozenset("have has had having get gets got".split())
AFTER_AUXILIARY: Final = frozenset(
    "been not chosen written built sent taken given made held broken kept become".split()
)
PAST: Final = frozenset("was were did had got".split())
DROPPED: Final = frozenset(
    "a an the and but that which it its there then also too please really very actually basically simply "
    "currently now "
    "quite".split()
)
# Weak prepositions, which a light rewording exchanges inside a class; the class tells "on Ana" from "for Ana".
LINKS: Final = {
    form: role
    for role, forms in {"at": "in on at onto", "of": "of", "for": "for as", "to": "to into"}.items()
    for form in forms.split()
}
# Every word that may be dropped from an English text.
SMALL: Final = frozenset({*PERSONS, *BEING, *HELPING, *AUXILIARY, *DROPPED, *LINKS, "any"})
# Where one text has the first, the second is no weak preposition in either.
COUPLED: Final = {"off": "on", "out": "in", "from": "to", "this": "that", "these": "those"}
# Spelt like a word that holds a sentence together.
SHOUTED: Final = frozenset("US IT AM WE ME RE AN AS OR DO".split())
# With one of these in front, a phrase may stand at the beginning or at the end of a sentence.
MARKERS: Final = frozenset(
    "if when because before after with without by from until since while during over under per through unless "
    "am im beim bei für vor nach mit ohne wenn weil el los en para por con sin antes después cuando porque pour "
    "dans avant "
    "après avec sans quand em no na nos nas com sem quando в у на для перед после после з із для після коли "
    "когда если якщо".split()
)

NEGATIONS: Final = _table(
    "not no never none nobody nothing neither nor nicht kein keine keinen keinem keiner keines nie niemals "
    "nichts weder "
    "nunca jamás ni nada tampoco pas jamais aucun aucune rien ne n não nem nenhum nenhuma не нет ни никогда нельзя "
    "немає ні ніколи 不 没 沒 未 非 勿 ない;without ohne sin sans sem без;instead;except;unless"
)
# French says "no" in two words, of which the second counts.
NEGATION_PARTICLES: Final = frozenset({"ne", "n"})
# Words that come and go with a negation.
BESIDE_NEGATION: Final = frozenset(
    "longer any anymore anything more always yet ever all больше більше mehr más plus".split()
)

NUMBERS: Final = {
    **{word: str(n) for n, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen "
        "eighteen nineteen twenty".split()
    )},
    **{word: f"{n}0" for n, word in enumerate("thirty forty fifty sixty seventy eighty ninety".split(), 3)},
    "hundred": "100", "thousand": "1000", "million": "1000000",
    **{word: word for word in "first second third fourth fifth sixth seventh eighth half once twice".split()},
    "1st": "1.", "2nd": "2.", "3rd": "3.", "4th": "4.", "5th": "5.", "half": "half", "once": "once", "twice": "twice",
}  # fmt: skip
UNITS: Final = {
    **_table(
        "second s sec secs seconds sek;minute min mins minutes;hour h hr hrs hours;day d days;week weeks;ms "
        "msec;kb;mb;gb;tb;"
        "km;kg;cm;mm;px pixel pixels;% percent"
    ),
    "Mb": "megabit",
    "Gb": "gigabit",
    "kB": "kb",
    "am": "am",
    "pm": "pm",
}
DAYS: Final = frozenset(
    "today tomorrow yesterday tonight weekend mon tue wed thu fri sat sun jan feb mar apr jun jul aug sep oct "
    "nov dec".split()
)
PLACES_OF_WORK: Final = frozenset(
    "staging production prod test dev development live local ci qa preview sandbox".split()
)

IRREGULAR: Final = {
    **_table(
        "choose chose chosen;write wrote written;keep kept;break broke broken;build built;send sent;run "
        "ran;take took taken;"
        "give gave given;make made;forbid forbade forbidden;hold held;show showed shown;know knew known;find found;"
        "buy bought;meet met;sell sold;speak spoke spoken;drive drove driven;hide hid hidden;begin began "
        "begun;go went gone;"
        "say said;tell told;teach taught;think thought;get got;lose lost;fall fell fallen;rise rose risen;eat "
        "ate eaten;"
        "cache caches cached caching;index indices indexes;child children;person people;have has had;do does did"
    ),
}
PAST_FORMS: Final = frozenset(
    "chose wrote kept broke built sent ran took gave made forbade held knew found bought met sold spoke drove "
    "hid began "
    "went said told taught thought got lost fell rose ate".split()
)
UNINFLECTED: Final = frozenset(
    "news does staging building meeting morning evening during need needs embed speed feed seed hundred thing "
    "nothing "
    "something anything everything redis always across kubernetes sometimes perhaps".split()
)
STEMS_WITH_E: Final = frozenset(
    "cach encod decod creat requir compar configur stor shar renam restor ignor prepar declar measur ensur "
    "explor handl enabl disabl compil "
    "schedul profil complet delet prun includ provid decid divid guid pip typ retir acquir fir hir wir captur secur "
    "assum consum resum combin defin determin examin machin imagin refin outlin declin invit quot promot emul "
    "simul".split()
)
VERBS_AFTER_A_NAME: Final = frozenset("is was has will can and must should may might had would could does did".split())

# One word for another without a change of meaning, in their base forms.
SYNONYMS: Final = _table(
    "use utilize utilise employ;start begin;choose pick select;big large;fast quick rapid;db database;"
    "configuration config;repository repo;production prod;environment env;documentation docs doc;"
    "every each all;buy purchase;application app;kubernetes k8s;postgres postgresql;javascript js;typescript ts;"
    "through via;until till;about approximately around roughly ca;colour color;favourite favorite;mail email;"
    "folder directory;bug defect;car automobile;child kid;mum mom mother;dad father;finish complete;if when;"
    "require demand;whole entire;often frequently;rarely seldom;behaviour behavior;centre center;licence license;"
    "organise organize;serialise serialize;normalise normalize;initialise initialize;optimise optimize;"
    "near close;reply answer;keep retain;must shall;dependency dependencie"
)

# Opposites that deny: of one subject, only one of the two holds.
DENYING: Final = _opposites(
    "enable/disable on/off allow/deny allow/forbid allow/prohibit permit/forbid permitted/forbidden "
    "always/never true/false "
    "required/optional require/optional mandatory/optional before/after fast/slow faster/slower work/fail pass/fail "
    "safe/unsafe secure/insecure like/dislike like/hate love/hate synchronous/asynchronous sync/async public/private "
    "possible/impossible valid/invalid complete/incomplete encrypt/unencrypted encrypted/unencrypted more/less "
    "more/fewer "
    "higher/lower bigger/smaller up/down open/closed open/close succeed/fail accept/reject include/exclude "
    "encourage/discourage good/bad better/worse correct/incorrect correct/wrong right/wrong mutable/immutable "
    "internal/external manual/automatic manually/automatically cheap/expensive easy/hard early/late"
)
# Of the words above, those that deny only as what is said of a subject: "open issues" and "closed issues" both exist.
PREDICATES: Final = frozenset(
    "fast slow safe unsafe secure insecure synchronous asynchronous sync async public private possible "
    "impossible valid "
    "invalid complete incomplete open closed good bad correct incorrect wrong right mutable immutable internal "
    "external "
    "manual automatic cheap expensive easy hard early late true false mandatory optional required more less fewer "
    "permitted encrypt encrypted unencrypted".split()
)
# Opposites that tell two things apart.
DISTINGUISHING: Final = _opposites(
    "min/max minimum/maximum first/last left/right read/write request/response old/new oldest/newest "
    "older/newer upper/lower "
    "top/bottom input/output client/server start/stop start/end start/finish add/remove add/delete increase/decrease "
    "increase/reduce raise/lower raise/reduce push/pull upload/download import/export install/uninstall "
    "frontend/backend "
    "login/logout source/target source/destination buy/sell lock/unlock mount/unmount encode/decode "
    "encrypt/decrypt send/receive "
    "major/minor inner/outer parent/child mother/father brother/sister son/daughter husband/wife create/delete "
    "create/destroy upgrade/downgrade inside/outside above/below over/under with/without from/to if/unless "
    "morning/evening "
    "day/night win/lose gain/loss next/previous next/last early/late"
)
# Prefixes that deny a word.
DENYING_PREFIXES: Final = ("un", "dis", "non", "de")

# Between two things, these say which of them is meant: with the sides changed over, one text denies the other.
PREFERRING: Final = frozenset("over before after than instead not".split())

# What follows one of these is a case, not a claim.
CONDITIONS: Final = frozenset("if when unless because while until since".split())

# After these a value stands that a subject has one of at a time.
STATIVE: Final = frozenset("run live listen equal belong est ist es é sind está".split())
STATIVE_PARTICIPLES: Final = frozenset("write host store locate base build".split())
# Nouns that have one value.
SINGULAR: Final = frozenset(
    "default port name version timeout limit size branch deadline colour color region manager lead owner maintainer "
    "favourite favorite primary main maximum minimum birthday address format language database framework editor "
    "rate price "
    "count threshold budget license password path file host url encoding discount interval capital retention "
    "width height".split()
)


def same_meaning(first: str, second: str) -> bool:
    """Tell whether two base forms are one word or listed as synonyms."""
    return first == second or SYNONYMS.get(first, first) == SYNONYMS.get(second, second)


def opposites_of(word: str) -> set[str]:
    """Return the words whose presence in the place of this one tells two texts apart."""
    return denials_of(word) | DISTINGUISHING.get(word, set())


def denials_of(word: str) -> set[str]:
    """Return the words that deny this one of the same subject, by list or by prefix, as in "safe" and "unsafe"."""
    return DENYING.get(word, set()) | by_prefix(word)


def by_prefix(word: str) -> set[str]:
    """Return the word with a denying prefix put on or taken off."""
    if len(word) < 4:
        return set()
    bare = {word.removeprefix(prefix) for prefix in DENYING_PREFIXES if len(word) > len(prefix) + 3}
    return {prefix + word for prefix in DENYING_PREFIXES} | bare - {word}
