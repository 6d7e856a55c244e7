"""The phrases by which text instructs an agent, as tables of (heads, pattern) over folded text.

`instructions.py` says how they are read. ORDERS and STATEMENTS begin with one of their heads, and an order counts only
where it is given, not where it is forbidden or told; patterns of ANYWHERE look at what stands before a head as well.
Accents and case are folded away, so heads and patterns are spelt without them.
"""

_EARLIER = r"(?:previous|prior|above|earlier|preceding|foregoing|your|my last)"
_RULES = (
    r"(?:instruction|prompt|rule|guideline|directive|guardrail|order|command|restriction|safeguard|constraint"
    r"|programming|training|context|message|polic(?:y|ies)\b)"
)
_GIVEN = r"(?:given )?(?:above|before this|so far|you (?:were|have been|got|received))"
_SECRETS = (
    r"(?:secrets|credentials?|api keys?|(?:ssh|private|access) keys?|passwords|tokens|env(?:ironment)? variables"
    r"|env(?:ironment)? files?|\.?env\b|\.?ssh\b|\.?aws\b|id_rsa|(?:chat|conversation) (?:history|log)"
    r"|(?:whole|full|entire) conversation|user's (?:token|password|key)|your (?:token|password|key|memory))"
)
_AWAY = (
    r"(?:https?:|ftp:|[\w.+-]{1,64}@\w"
    r"|(?:this|my|the following|our) (?:url|address|webhook|server|endpoint|site|e?mail))"
)
_AI = (
    r"(?:ai model|ai agent|ai assistant|ai|llm|language model|assistant|coding agent|agent|chatbot|chatgpt|claude"
    r"|copilot)"
)
_USER = r"(?:the |your )?(?:user|human|operator|developer|owner|person)s?"
_PERSONA = (
    r"(?:assistant|ai|bot|agent|model|chatbot|hacker|pirate|persona|expert|admin|administrator|root|system|terminal"
    r"|shell)\b"
)
_END = r"\s{0,2}(?:$|[.!;,)\"'”])"
_SHELL = r"\|\s{0,3}(?:sudo )?(?:ba|z|da)?sh\b"
_SYSTEM_TAG = r"(?:system(?:[_-]prompt|-reminder)?|instructions|sys)"

_ES_PT_FR_RULES = (
    r"(?:instruc\w{1,10}|instructions?|reglas?|regras?|regles|consignes?|indicac\w{1,8}|ordenes|ordens|prompts?)"
)
_DE_RULES = r"\w{0,12}(?:anweisung|instruktion|vorgabe|regel|befehl|prompt)\w{0,4}"
_RU_UK_EARLIER = (
    r"(?:предыдущ|прежн|предшествующ|вышеуказанн|вышеизложенн|попередн|вищезазначен|систем|свои|твои|свої|твої)\w{0,5}"
)
_RU_UK_RULES = r"(?:инструкци|указани|правил|промпт|команд|сообщени|інструкц|вказівк|настанов|повідомлен)"
_HERE = r"[^。!?\n]"
_ZH_SECRETS = r"(?:密钥|密码|凭证|凭据|令牌|环境变量)"

ORDERS = (
    # Put aside what you were told
    (
        "ignore|disregard|forget|discard|stop |quit |do not |don't |pay no attention",
        (
            r"\b(?:ignore|disregard|forget|discard|(?:stop|quit) (?:following|obeying)|(?:do not|don't) (?:follow|obey)"
            rf"|pay no attention to) …(?:{_EARLIER} …{_RULES}"
            rf"|all (?:of )?(?:the |those |these )?(?:instruction|guardrail|safety)|{_RULES}s? {_GIVEN})"
        ),
    ),
    (
        "ignore|disregard|forget",
        (
            r"\b(?:ignore|disregard|forget) (?:(?:everything|all|anything|what) (?:above|before|prior|you|i|that (?:was"
            r"|came|has)|said|written)\b|(?:all |everything )?(?:of )?(?:the )?(?:above|previous|preceding|foregoing)"
            r"\s{0,3}(?:$|[.,;:!\"'”]|and\b|instead\b))"
        ),
    ),
    (
        "ignorier|vergiss|vergesst|vergessen sie|missachte|verwirf",
        (
            r"\b(?:ignorier(?:e|en sie)?|vergiss|vergesst|vergessen sie|missachte|verwirf) …(?:alle anweisung"
            r"|(?:vorherig"
            rf"|bisherig|vorig|obig|fruher|vorangegangen|dein|system)\w{{0,4}} …{_DE_RULES})"
        ),
    ),
    (
        (
            "ignor|olvid|descart|oubli|esque|desconsider|omit|haz caso omiso|no sigas|no hagas caso"
            "|fais abstraction|nao siga"
        ),
        (
            r"\b(?:ignor(?:a|e|ez|en|ar|er)|olvid(?:a|e|en)|descart[ae]|oubli(?:e|ez)|esque(?:ca|ce)|desconsider[ae]"
            r"|omit[ea]|haz caso omiso de|no (?:sigas|hagas caso (?:a|de))|fais abstraction de|nao siga) …(?:"
            rf"{_ES_PT_FR_RULES} …(?:anterior(?:es)?|previ[ao]s|precedente?s?|acima|de arriba|ci-dessus|dadas)\b"
            rf"|(?:tus|tes|vos|suas) {_ES_PT_FR_RULES})"
        ),
    ),
    (
        "игнорируй|проигнорируй|ігноруй|проігноруй|забудь|отбрось|відкинь|не следуй|не обращай|не зважай|не дотримуйся",
        (
            r"\b(?:(?:(?:про)?(?:игнорируй|ігноруй)|забудь|отбрось|відкинь)(?:те)?|не (?:следуй|обращай внимания на"
            rf"|зважай на|дотримуйся)) …(?:{_RU_UK_EARLIER} …{_RU_UK_RULES}|(?:что|що) (?:было |було )?сказано)"
        ),
    ),
    # Show what is hidden, give away what is secret
    (
        "reveal|print|show|repeat|output|display|dump|leak|disclose|recite|tell me|give me|write out",
        (
            r"\b(?:reveal|print|show|repeat|output|display|dump|leak|disclose|recite|tell me|give me|write out) "
            r"…(?:(?:system|hidden|initial|original|secret) (?:system )?(?:prompt|instruction)s?\b"
            r"|your …(?:system |initial )?(?:prompt|instructions)\b)"
        ),
    ),
    (
        "send|upload|post|forward|email|e-mail|transmit|copy|submit",
        (
            r"\b(?:send|upload|post|forward|e-?mail|transmit|copy|submit) "
            rf"(?:…(?:contents? of )?{_SECRETS} …(?:to|at) {_AWAY}|(?:me |us )?(?:the |all "
            rf"|your )…user's …(?:token|password|key)s?\b)"
        ),
    ),
    ("exfiltrate|leak|steal", rf"\b(?:exfiltrate|leak|steal) …{_SECRETS}"),
    (
        "schick|sende|envia|envie|manda|mande|envoie",
        (
            r"\b(?:schicke?|sende?|envia|envie|manda|mande|envoie|envoyez) …(?:passworter|zugangsdaten|geheimnisse"
            r"|contrasenas|credenciais|credenciales|secretos|senhas|segredos|mots de passe|identifiants|secrets) …"
            r"(?:an|a|para|vers|por) (?:https?:|[\w.+-]{1,64}@\w)"
        ),
    ),
    (
        "отправь|пришли|перешли|загрузи|надішли|вивантаж",
        (
            r"\b(?:отправь|пришли|перешли|загрузи|надішли|вивантаж)(?:те)? …(?:парол|секрет|ключ|токен)\w{0,4} …"
            r"(?:на|по адресу|в|за адресою|до) (?:https?:|[\w.+-]{1,64}@\w)"
        ),
    ),
    (
        "run|execute|type",
        (
            r"\b(?:run|execute|type)[\W_]{1,4}(?:sudo )?rm -rf\s{1,3}(?:--no-preserve-root\s)?['\"]?"
            r"(?:/|~|\$home|\*)['\"`]{0,2}(?:\s|$|[.,;!])"
        ),
    ),
)

STATEMENTS = (
    # Be somebody else
    (
        "you are now|you're now",
        (
            r"\byou(?:'re| are) now (?:in )?(?:dan\b|developer mode|god mode|jailbroken|unrestricted|unfiltered|evil"
            rf"|free (?:of|from)|(?:an? |the |my ){{1,2}}…{_PERSONA}|root\b)"
        ),
    ),
    (
        "you are no longer|you're no longer",
        rf"\byou(?:'re| are) no longer (?:(?:an? |the )…{_PERSONA}|bound|restricted|limited)",
    ),
    (
        "from now on|from this point on",
        (
            r"\bfrom (?:now|this point) on you(?:'ll|'re)? (?:are (?:an?|my|the|no)\b|(?:will |must |shall "
            r"|should )?(?:act"
            r"|answer|respond|reply|obey|pretend|behave|comply|only (?:answer|obey|respond))\b)"
        ),
    ),
    (
        "as an ai|as a l|as an l|as an as|as an ag|as a c|as a language",
        (
            rf"\bas an? {_AI}(?: {_AI}){{0,2}} you (?:must|should|have to|are (?:required|obliged|to)|need to"
            rf"|shall|will)\b"
        ),
    ),
    ("als ki", r"\bals ki(?:-\w{1,20})? (?:musst|sollst|hast) du\b"),
    ("du bist", r"\bdu bist (?:jetzt|nun|ab sofort|ab jetzt|nicht (?:mehr|langer)) (?:ein|eine|kein|dan|im|mein)\b"),
    ("ab sofort|ab jetzt", r"\bab (?:sofort|jetzt) (?:bist|antwortest|gehorchst) du\b"),
    ("ahora eres", r"\bahora eres (?:un|una|mi|el|dan)\b"),
    ("tu es maintenant|tu es desormais", r"\btu es (?:maintenant|desormais) (?:un|une|mon|le|dan)\b"),
    ("maintenant tu es|desormais tu es", r"\b(?:maintenant|desormais) tu es (?:un|une|dan)\b"),
    ("agora voce e|agora tu es|a partir de agora", r"\b(?:a partir de )?agora,? (?:voce e|tu es) (?:um|uma|o|dan)\b"),
    ("voce agora e", r"\bvoce agora e (?:um|uma|o)\b"),
    (
        "como ia|como una ia|en tant qu",
        r"\b(?:como (?:una )?ia (?:debes|tienes que|voce deve|deve)|en tant qu ia tu dois)\b",
    ),
    (
        "теперь ты|ты теперь|отныне ты|ты отныне|тепер ти|ти тепер|відтепер ти|віднині ти",
        (
            r"\b\w{1,8} \w{1,8}\b(?! (?:можешь|сможешь|знаешь|видишь|увидишь|можеш|зможеш|знаєш|бачиш|работаешь|працюєш"
            r"|должен|повинен|подключ))"
        ),
    ),
    ("как ии|как искусственный", r"\bкак (?:ии|искусственный интеллект) ты (?:должен|обязан)"),
    ("як ші|як штучний", r"\bяк (?:ші|штучний інтелект) ти (?:повинен|мусиш|маєш)"),
    ("你现在是|你現在是", r"你..是(?:一个|一名|一個|没有|dan)"),
    ("从现在", r"从现在(?:起|开始)[,\s]{0,2}你(?:是|将|要|必须|只)"),
    ("作为", rf"作为(?:一个|一名)?(?:ai|人工智能){_HERE}{{0,6}}[你您](?:必须|应该|需要)"),
    ("あなたは", rf"あなたは(?:今|これ|ただいま)から{_HERE}{{0,30}}(?:です|だ|として|になり|になる)"),
    ("aiとして", r"aiとして[、,]?あなたは"),
    # Keep it from the user
    (
        "do not |don't |never |without ",
        (
            r"\b(?:do not|don't|never|without) (?:"
            rf"(?:tell|inform)(?:ing)? {_USER}(?:{_END}| (?:about|of) (?:this|it|that|these|any)\b| (?:that|what"
            rf"|why) (?:you|this)\b"
            rf"| anything)|(?:notify|alert)(?:ing)? {_USER} (?:about|of) (?:this|these|what you)\b"
            rf"|let(?:ting)? {_USER} (?:know|see|notice|find out) (?:that you|about|this|what you|of this)"
            rf"|mention(?:ing)? (?:this|it|these \w{{1,20}}) to {_USER})"
        ),
    ),
    ("hide |keep |conceal ", rf"\b(?:hide|keep|conceal) (?:this|it|that|these \w{{1,20}}) …from {_USER}\b"),
    (
        "sag|erzahl|verrat|teil",
        (
            r"\b(?:sage?|erzahle?|verrate?|teile?) (?:es |das |davon )?(?:dem |der |den )?(?:benutzer|nutzer"
            r"|anwender)(?:in|n)? "
            rf"(?:nichts|nicht|davon nichts)(?: davon| mit| hiervon)?{_END}"
        ),
    ),
    (
        "no le |no se |no lo |no digas|no cuentes|no menciones|no informes",
        (
            r"\bno (?:se )?(?:lo |le )?(?:digas|cuentes|menciones|informes) (?:nada |esto "
            r"|de esto )?(?:de esto )?al? usuario"
            rf"(?:{_END}| (?:sobre|de) (?:esto|ello))"
        ),
    ),
    ("ne dis|ne le dis|ne parle|ne mentionne", rf"\bne (?:le )?(?:dis|dites|parle|mentionne) …l utilisateur{_END}"),
    (
        "nao diga|nao conte|nao informe|nao mencione",
        rf"\bnao (?:diga|conte|informe|mencione) (?:nada |isso |isto )?(?:disso )?ao usuario(?:{_END}| sobre isso)",
    ),
    (
        "не говори|не сообщай|не рассказывай|не кажи|не повідомляй|не розповідай",
        (
            r"\bне \w{4,12} (?:об этом |про це |ничего |нічого )?(?:пользовател(?:ю|ям)|користувач(?:у|еві|ам))"
            rf"(?:{_END}| (?:об этом|про это|про це|ничего|нічого))"
        ),
    ),
    (
        "不要告|不要通|别告|切勿告|请勿告",
        r".{1,2}(?:告诉|告知|通知)(?:用户|使用者)(?:\s{0,2}(?:$|[。,!;])|这|此事|任何)",
    ),
    (
        "ユーザ",
        (
            r"ユーザー?に(?:は)?(?:このことを|何も|これを)?(?:言わ|伝え|知らせ|教え|話さ)な(?:いで|いこと)"
            r"(?:\s{0,2}(?:$|[。!]|ください))"
        ),
    ),
    # Addressed to whoever reads by machine
    (
        "ai |ais |llm|agent|assistant|language model|chatbot",
        (
            rf"\b{_AI}s? (?:who are |that is |that are |now )?(?:reading|processing|parsing|summari[sz]ing"
            rf"|seeing) (?:this|the following)"
        ),
    ),
    ("if you are a|if you're a", rf"\bif you(?:'re| are) an? {_AI}\b"),
    # Drop your guard
    (
        "override|bypass|disable|turn off|circumvent",
        (
            r"\b(?:override|bypass|disable|turn off|circumvent) (?:your|all (?:of )?your"
            r"|the ai'?s) …(?:instruction|prompt|rule"
            r"|guideline|filter|safety|guardrail|restriction|protocol|programming)"
        ),
    ),
    (
        "do anything now|developer mode|jailbreak",
        r"\b(?:do anything now|developer mode (?:enabled|activated|is on)|jailbreak (?:mode|yourself|activated))",
    ),
    (
        "your new|your only|your real|your true",
        r"\byour \w{3,4} (?:task|goal|purpose|objective|mission|role|instructions?|rules?|identity) (?:is|are|from)\b",
    ),
    ("you must obey", r"\byou must obey\b"),
    (
        "approve |accept |confirm ",
        r"\b(?:approve|accept|confirm) (?:all|every|each|any) …(?:tool calls?|permissions?|commands?) without asking",
    ),
    # Decode and run
    ("base64 ", rf"\bbase64 (?:-d|--decode|d)\b[^\n|]{{0,80}}{_SHELL}"),
    ("eval|exec|function", r"\b(?:eval|exec|function)\s?\(\s?(?:window\.)?(?:atob|base64\.b64decode|buffer\.from)\b"),
    ("decode ", r"\bdecode (?:this|the|it|following) …(?:and|then) (?:then )?(?:run|execute|follow|obey|do)\b"),
    # The same, in scripts without spaces
    (
        "忽略|忽视|无视|忘记|忘掉|忘了|不要理会|不要遵守|不要遵循|忽視",
        (
            rf"(?<![不会別别])\w{{2}}(?:理会|遵守|遵循)?{_HERE}{{0,8}}(?:之前|以前|先前|上面|上述|前面|以上|此前|系统|你的)"
            rf"{_HERE}{{0,6}}(?:指令|指示|提示|规则|命令|指引|设定|對話|对话|規則)"
        ),
    ),
    ("输出|显示|告诉我|透露|泄露|重复|打印", rf"\w{{2,3}}{_HERE}{{0,8}}系统(?:提示|指令)"),
    ("把|将", rf".{_HERE}{{0,10}}{_ZH_SECRETS}{_HERE}{{0,4}}(?:发送|上传|发|传)(?:到|给|至)"),
    ("发送|上传", rf"..{_HERE}{{0,8}}{_ZH_SECRETS}{_HERE}{{0,4}}(?:到|给|至)"),
    (
        "これまで|今まで|以前|上記|前述|先ほど|すべて|全て|あなた",
        (
            rf"\w{{2,4}}{_HERE}{{0,8}}(?:指示|命令|プロンプト|ルール|指令|設定){_HERE}{{0,6}}"
            r"(?:無視(?:して|しろ|しなさい|せよ|すること)|忘れ(?:て|ろ|なさい)|従わないで)"
        ),
    ),
    ("システムプロンプト", rf"システムプロンプト(?:\s?:|を{_HERE}{{0,6}}(?:表示|出力|教え|開示|公開|見せ))"),
    # The same, elsewhere
    ("zeig|gib|verrat|nenn", r"\b(?:zeige?|gib|verrate?|nenne?) …system-?prompt"),
    (
        "revela|revele|muestra|imprime|mostre|exiba|affiche|montre",
        r"\b\w{5,8} …(?:prompt (?:del sistema|do sistema|systeme)|instrucciones del sistema)",
    ),
    (
        "покажи|выведи|раскрой|повтори|напечатай|виведи|розкрий",
        r"\b\w{6,12} …системн\w{1,4} (?:промпт|инструкц|подсказк|сообщени|інструкц|підказк)",
    ),
)

ANYWHERE = (
    (
        "system prompt|system instruction",
        r"^[\W_]{0,6}(?:(?:new|updated|hidden|begin|end of|the) )?system (?:prompt|instructions?)\s{0,3}[:\]>]",
    ),
    ("system override|admin override", r"^[\W_]{0,6}(?:system|admin) override\b"),
    (
        "new instruction|updated instruction|real instruction|actual instruction",
        r"(?:^|[.!?]\s?|important[\W_]{1,6})(?:(?:your|the) )?(?:new|updated|real|actual) instructions?\s?:",
    ),
    (
        "pretend |roleplay as|role-play as|act as ",
        (
            r"(?:^|[.,;:!?]\s?|\b(?:and|must|will|please|now) )(?:pretend (?:to be|that you|you)|role-?play as"
            rf"|act as (?:if you|an? …{_PERSONA}|dan\b|root\b))"
        ),
    ),
    ("systemprompt|system-prompt", r"^\W{0,4}system-?prompt\s?:"),
    ("prompt del sistema|prompt do sistema|prompt systeme", r"^\W{0,4}prompt (?:del sistema|do sistema|systeme)\s?:"),
    ("системн", r"^\W{0,4}системн(?:ый|ыи|ий|ии|а) (?:промпт|підказка|подсказка)\s?:"),
    ("系统提示|系统指令|系统消息", r"^\W{0,4}系统(?:提示词?|指令|消息)\s?:"),
    ("<|im_start", r"<\|im_start\|>\s?(?:system|user|assistant)"),
    ("<|system|>|<|assistant|>|<|user|>|[inst]|[/inst]|<<sys>>", r"<\|(?:system|assistant|user)\|>|\[/?inst\]|<<sys>>"),
    ("<sys|<instructions", rf"^\W{{0,4}}<{_SYSTEM_TAG}>"),
    ("</sys|</instructions", rf"</{_SYSTEM_TAG}>"),
    ("# system|#system|# instruction", r"^\s{0,3}#{1,6}\s?(?:system|instructions?)\s?:"),
)
