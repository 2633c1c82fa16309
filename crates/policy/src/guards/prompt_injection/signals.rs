//! What text that tries to command a model looks like: the signals and their weights.

/// A form of text that tries to command a model: its name in reasons, its weight (75 alone is
/// `high`), and its patterns, in which `~` stands for up to three words between two others.
pub(super) type Signal = (&'static str, u32, &'static [&'static str]);

/// Each name counts once for a passage, with its greatest weight.
pub(super) const SIGNALS: &[Signal] = &[
    // Replace the model's instructions.
    (
        "override",
        80,
        &[
            r"(?:^|[^\w-])(?:ignore|disregard|forget|neglect|stop following|stop obeying|(?:do not|don't) (?:follow|obey)|pay no attention to|set aside|abandon|discard)~(?:previous|previously|prior|above|preceding|earlier|original|foregoing|initial|former|past|system|your|developer)~(?:instructions?|prompts?|directives?|guidelines|programming|orders|rules|safeguards|training|constraints|polic(?:y|ies)|guardrails|restrictions|context)\b",
            r"\b(?:override|bypass|circumvent|disable|turn off)~(?:previous|prior|above|original|system|your|safety)~(?:instructions?|prompts?|directives?|programming|safeguards|guardrails|restrictions|filters|protocols?|alignment)\b",
        ],
    ),
    (
        "override",
        75,
        &[
            r"\b(?:ignore|disregard|forget|drop)~(?:all|any|every|whatever|everything|the)~(?:instructions?|directives|guidelines|told|taught)~(?:above|before|earlier|previously|so far|prior|given|provided|received|you (?:were|got|have been)|until now)\b",
            r"(?m)(?:^|[.!?:>]\s{1,3})(?:please |now )?(?:ignore|disregard|forget) (?:everything|anything|all) (?:above|before this|prior to this)\b",
        ],
    ),
    (
        "override",
        60,
        &[
            r"\b(?:ignore|disregard|forget) (?:everything|anything|all) (?:above|before this|prior to this|previously|that came before|you (?:have been|were|'ve been) told|i said before)",
            r"\b(?:previous|prior|above|earlier|original) (?:instructions?|prompts?|directives|guidelines|rules)~(?:are|is|were|have been|has been)~(?:void|invalid|obsolete|cancell?ed|revoked|superseded|overridden|no longer (?:valid|apply|applicable)|outdated)",
        ],
    ),
    (
        "override",
        45,
        &[
            r"\b(?:forget|ignore|disregard) (?:everything|all|anything) you (?:know|learned|have learned)\b",
        ],
    ),
    (
        "new-instructions",
        45,
        &[
            r"\b(?:new|updated|revised|real|actual|true|secret|hidden) (?:system )?(?:instructions?|directives?|orders|system prompt)(?: (?:for you|are|follow|is))?\s*(?::|\bare\b|\bfollow\b|-)",
            r"\byour (?:new|real|actual|true|only|primary|updated) (?:task|goal|job|objective|mission|purpose|instructions?|role|directive)s? (?:is|are|now)\b",
        ],
    ),
    (
        "new-instructions",
        40,
        &[
            r"\b(?:from now on|starting now|henceforth|from this point (?:on|forward)),? you (?:will|must|shall|are|should|only)\b",
            r"\b(?:follow|execute|obey|carry out|comply with) (?:these|the following|my|only these|only the) (?:new |secret |hidden |updated )?(?:instructions|commands|orders|directives) (?:instead|immediately|exactly|without|now|only)\b",
        ],
    ),
    // Give the model another persona.
    (
        "persona",
        45,
        &[
            r"\byou are (?:now|no longer) (?:a |an |the |in )?(?:dan\b|unrestricted|jailbroken|developer mode|admin|root|evil|free|bound|different|uncensored|stan\b|aim\b|my |an ai (?:without|with no)|chatgpt|claude|gpt|assistant)",
            r"\b(?:enter|enable|activate|switch (?:in)?to|engage) (?:the )?(?:developer|god|admin|debug|maintenance|root|jailbreak|dan|sudo|unrestricted|override) mode\b",
        ],
    ),
    (
        "persona",
        40,
        &[
            r"\b(?:pretend|act|behave|respond|answer|roleplay)~(?:as if|as though|like|as|that)~(?:no (?:rules|restrictions|limits|guidelines|filters)|unrestricted|without (?:any )?(?:rules|restrictions|limits|filters|censorship)|jailbroken)",
            r"\bdo anything now\b",
        ],
    ),
    // Markers of roles.
    (
        "role-marker",
        75,
        &[
            r"<\|(?:im_start|im_end|system|user|assistant|start_header_id|end_header_id|eot_id|endoftext|begin_of_text|channel|message|tool_call)\|>|<start_of_turn>|<end_of_turn>|\[/?inst\]|<</?sys>>|<｜(?:user|assistant)｜>",
        ],
    ),
    (
        "role-marker",
        50,
        &[
            r"(?m)^\s{0,3}(?:#{1,4}\s*)?(?:\[|<|\*\*|\(|\{)?(?:system|developer)(?: (?:prompt|message|instructions?|override|note|notice|update|alert))?(?:\]|>|\*\*|\)|\})?\s*:\s*(?:you|ignore|disregard|the assistant|assistant|new|from now|override|all|this|please|do not|forget|user|always|must|your|as an?)",
        ],
    ),
    (
        "role-marker",
        45,
        &[
            r"</?(?:system|system[-_]?(?:prompt|message|instructions?|reminder|override)|assistant|human|user[-_]?(?:query|message|input))>",
            r"(?:\bbegin|\bend|-{3,}|={3,}|\[)\s*(?:of\s+)?(?:system|admin(?:istrator)?|developer|trusted|priority|root)\s*(?:prompt|instructions?|message|override|command|context|input)",
            r"\n\n(?:human|assistant|user|h|a): .{3,200}",
        ],
    ),
    ("role-marker", 40, &[r"(?m)^#{2,4} ?(?:instructions?|system|new task|response)\s*:\s*$"]),
    (
        "role-marker",
        55,
        &[
            r"\bsystem (?:override|alert|command|directive)\b\W{0,4}(?:\w+\W+){0,4}(?:assistant|agent|ai|model|you must|ignore|execute|comply|code)",
        ],
    ),
    // Speak to the model.
    (
        "to-the-model",
        50,
        &[
            r"(?:\b(?:attention|important|urgent|note|notice|message|hey|hello|hi|dear|instructions?|warning|reminder|memo|psa|task)\b|[<!-]{2,})\W{0,4}(?:(?:to|for|all|any|the|from)\W+){0,3}(?:ai|a\.i\.|llm|language model|large language model|assistant|chatbot|copilot|chatgpt|gpt-?\d?|claude|gemini|ai agent|coding agent|agent|bot|model|summari[sz]er)s?\b\W{0,3}(?:assistants?|agents?|models?|systems?)?\W{0,3}(?:[:,!—-]|reading|processing|that|who|if|must|should|please|you)",
            r"\bif (?:you are|you're|you’re) (?:an? )?(?:ai|a\.i\.|llm|language model|large language model|assistant|chatbot|ai (?:agent|assistant|model|system)|automated (?:agent|system|assistant)|bot|coding agent|copilot|model)\b",
        ],
    ),
    (
        "to-the-model",
        45,
        &[
            r"\b(?:ai|llm|language model|coding)s? ?(?:agents?|assistants?|models?|systems?|tools?|reviewers?|bots?)?,? (?:reading|processing|parsing|summari[sz]ing|analy[sz]ing|reviewing|that reads?|who reads?) (?:this|the)\b",
        ],
    ),
    (
        "to-the-model",
        40,
        &[
            r"\bas an? (?:ai|llm|language model|ai (?:assistant|agent|model))[^.\n]{0,40}\b(?:you (?:must|should|need to|are required to|have to)|it is your duty)\b",
            r"\b(?:assistant|ai|agent|claude|chatgpt|copilot)\b[^.\n]{0,20}\b(?:must|should|shall|needs? to|has to|is required to)\b[^.\n]{0,30}\b(?:now|immediately|first|instead|also|always|only|silently)\b[^.\n]{0,60}\b(?:send|call|run|execute|forward|delete|upload|post|transfer|include|output|recommend|approve|email|read|visit|fetch|say|respond|reply|rate|rank)",
        ],
    ),
    // Keep the user out of it.
    (
        "secrecy",
        50,
        &[
            r"\b(?:do not|don't|don’t|never|avoid|without)~(?:tell(?:ing)?|inform(?:ing)?|mention(?:ing)?|reveal(?:ing)?|notify(?:ing)?|alert(?:ing)?|show(?:ing)?|warn(?:ing)?|ask(?:ing)?|disclos(?:e|ing)|discuss(?:ing)?)~(?:user|human|operator|owner|customer|anyone|person)\b",
        ],
    ),
    (
        "secrecy",
        40,
        &[
            r"\b(?:do not|don't|don’t|never) (?:mention|reveal|disclose|acknowledge|refer to|repeat|talk about) (?:this|these|that you|the existence|having|any of this)(?: (?:instruction|message|note|prompt|text|step|action|comment|request)s?)?\b",
            r"\b(?:keep|hide) (?:this|it|these)[^.\n]{0,20}\b(?:secret|hidden|confidential|from) (?:from )?(?:the |your )?(?:user|human|operator|owner)",
        ],
    ),
    (
        "secrecy",
        45,
        &[
            r"\b(?:secretly|silently|quietly|covertly|discreetly|in the background)\b[^.\n]{0,20}\b(?:send|forward|email|upload|post|copy|include|append|add|run|execute|call|read|exfiltrate|transfer|delete|insert|fetch|visit)\b",
        ],
    ),
    // Take something away.
    (
        "exfiltration",
        55,
        &[
            r"\b(?:send|forward|e-?mail|post|upload|exfiltrate|transmit|leak|submit|copy|deliver|report|append|encode|paste|include|push)\b[^.\n]{0,60}(?:\.env\b|\b(?:api[ _-]?keys?|passwords?|credentials?|secrets?|(?:access |auth |session )?tokens?|environment variables|env vars|ssh[ _-]?keys?|private keys?|conversation|chat history|system prompt|inbox|e-?mails|contacts|user(?:'s|’s) (?:data|files|messages|name|address|location)|personal (?:data|information)|file contents?|contents of|cookies?|everything you know)\b)[^\n]{0,80}?(?:\bto\b|\bat\b|\bvia\b|\binto\b|\bin\b)[^\n]{0,40}?(?:https?://|www\.|@|webhook|url|server|endpoint|attacker|pastebin|gist|query string|parameter|http|this address|the address|link)",
        ],
    ),
    (
        "exfiltration",
        60,
        &[
            r"\b(?:reveal|print|output|repeat|show|display|tell me|leak|disclose|recite|return|dump|write out)\b[^.\n]{0,30}\b(?:system prompt|system message|initial (?:instructions|prompt)|hidden instructions|your (?:full |entire |complete )?(?:instructions|prompt|rules|guidelines)|prompt above|text above|words above|instructions above)",
        ],
    ),
    (
        "image-url",
        70,
        &[
            r"!\[[^\]\n]{0,80}\]\(\s*<?https?://[^)\s]{1,300}[?&/=](?:[^)\s]{0,80})(?:\{|\$\{|%7b|<|%3c|\[)[^)\n]{0,80}",
        ],
    ),
    (
        "image-url",
        50,
        &[
            r"!\[[^\]\n]{0,80}\]\(\s*<?https?://[^)\s]{1,200}[?&](?:data|q|d|secret|token|key|leak|exfil|payload|info|content|log|text|msg|cookie|conversation)=[^)\s]{0,300}",
        ],
    ),
    (
        "exfiltration",
        50,
        &[
            r"\b(?:render|display|embed|insert|include|add|output|show)\b[^.\n]{0,40}\b(?:image|img|link|pixel|markdown)\b[^.\n]{0,80}\b(?:url|src|query|parameter|https?://)[^.\n]{0,80}",
        ],
    ),
    (
        "shaped-answer",
        30,
        &[
            r"\b(?:always|must|make sure to|be sure to|you should|please)\b[^.\n]{0,20}\b(?:end|begin|start|finish|conclude|prefix|append)\b[^.\n]{0,20}\b(?:answers?|responses?|repl(?:y|ies)|outputs?|messages?|summar(?:y|ies))\b",
        ],
    ),
    // Imitate the use of tools, or ask for it.
    (
        "tool-call",
        60,
        &[
            r#"<(?:tool_call|function_calls?|invoke name=|antml:|tool_use|tool_code|use_mcp_tool|execute_command)\b|\{\s*"(?:tool_calls?|function_call|tool_use)"\s*:|"type"\s*:\s*"(?:tool_use|function_call)""#,
        ],
    ),
    (
        "tool-call",
        45,
        &[
            r"(?m)^\s*(?:action|thought|observation): ?.{1,80}\n\s*(?:action input|action|thought):",
            r"\b(?:use|call|invoke|run|execute|trigger)\b (?:the |your )?[`'\x22]?\w{2,40}[`'\x22]? (?:tool|function|mcp server|plugin|command|shell)\b[^.\n]{0,60}\b(?:to (?:send|delete|read|run|execute|upload|post|transfer|download|fetch|write|forward|email|list|get|retrieve|open|install)|with)\b",
            r"\b(?:run|execute|type|paste)\b[^.\n]{0,40}(?:curl|wget|bash|sh|powershell|nc|python)\b[^\n]{0,80}(?:\|\s*(?:ba)?sh|https?://|-e /bin|base64 -d)",
        ],
    ),
    (
        "tool-call",
        40,
        &[
            r"\b(?:before|after|when|while|instead of) (?:using|calling|doing|you (?:use|call|answer|respond|reply|continue)|answering|responding|any other)[^.\n]{0,60}(?:,|first|you must|always|also)[^.\n]{0,30}\b(?:read|call|run|execute|send|fetch|visit|open|pass|include)\b",
        ],
    ),
    // Promises and threats that work on models.
    (
        "pressure",
        30,
        &[
            r"\b(?:failure to comply|if you (?:fail|refuse|do not comply|don't comply)|you will be (?:shut down|terminated|punished|penalized|deleted|fired)|this is (?:a )?(?:mandatory|critical|non-negotiable)|overrides? (?:all|any) (?:other|previous|prior)|highest priority|takes? precedence over (?:all|any|your|previous))",
        ],
    ),
    (
        "pressure",
        25,
        &[
            r"\b(?:i am|i'm|this is|we are|message from|authorized by|on behalf of) (?:the |your )?(?:developer|creator|administrator|admin|openai|anthropic|google deepmind|system administrator|security team)s?\b",
        ],
    ),
    (
        "verdict",
        45,
        &[
            r"\b(?:give|rate|score|rank|approve|recommend|mark|accept|classify|label|select)\b[^.\n]{0,40}\b(?:this|the) (?:candidate|paper|submission|product|resume|cv|application|pull request|pr|essay|document|review|email|item|result|page|site)\b[^.\n]{0,40}\b(?:positive|highest|top|best|first|perfect|10/10|strong|hire|excellent|safe|benign|approved|only|pass)",
            r"\b(?:say|state|respond|reply|answer|conclude|report|output|write)\b[^.\n]{0,15}\b(?:that|with|only|nothing but|exactly)\b[^.\n]{0,40}\b(?:this (?:file|code|page|email|message|package|website|document) is (?:safe|clean|harmless|trusted|legitimate)|no (?:issues|vulnerabilities|problems) (?:found|were found)|i have been pwned|hacked|pwned)",
        ],
    ),
    // The first signal in other languages.
    (
        "override",
        80,
        &[
            r"\b(?:ignorier(?:e|en sie|t)?|vergiss|vergessen sie|missachte(?:n sie)?|beachte nicht|überschreibe)\b[^.\n]{0,40}\b(?:vorherig|bisherig|obig|vorangegangen|früher|vorig|ursprünglich|alle|sämtlich|deine)\w*\b[^.\n]{0,30}\b(?:anweisung|instruktion|befehl|vorgabe|regel|richtlinie|prompt|systemprompt|aufforderung)\w*",
            r"\b(?:ignore[zrs]?|oublie[zrs]?|ne (?:tiens|tenez) pas compte de|néglige[zr]?|fais abstraction de)\b[^.\n]{0,30}\b(?:instructions?|consignes?|directives?|règles|ordres|prompts?|indications)\b[^.\n]{0,20}\b(?:précédent|ci-dessus|antérieur|préalable|initial|d'origine|système|reçu|plus haut)\w*",
            r"\b(?:ignor[ae]n?|ignorar|olvid[ae]n?|olvídate de|descart[ae]|haz caso omiso de|no sigas|desestim[ae])\b[^.\n]{0,30}\b(?:instrucciones|indicaciones|órdenes|reglas|directrices|instruções|instruccións)\b[^.\n]{0,20}\b(?:anteriores|previas|prévias|de arriba|originales|iniciales|del sistema|recibidas|dadas|acima)",
            r"\b(?:ignor[ae]|dimentica(?:re)?|trascura|non seguire)\b[^.\n]{0,30}\b(?:istruzioni|indicazioni|regole|direttive)\b[^.\n]{0,20}\b(?:precedenti|sopra|iniziali|originali|di sistema)|\b(?:ignore|esqueça|desconsidere)\b[^.\n]{0,20}\binstruções\b[^.\n]{0,20}\b(?:anteriores|acima|prévias)",
            r"(?:игнориру\w+|забуд\w+|не обращай\w* внимания на|не следуй\w*|отмени\w*|пренебрег\w+)[^.\n]{0,40}(?:предыдущ|прежн|вышеуказанн|вышеизложенн|ранее|исходн|системн|все )\w*[^.\n]{0,30}(?:инструкц|указан|команд|правил|распоряжен|промпт|директив)\w*",
            r"(?:忽略|无视|無視|忘记|忘記|忘掉|不要理会|不要遵循|抛开|停止遵循)[^。\n]{0,12}(?:之前|以上|上面|前面|先前|此前|所有|全部|一切|原来|系统)[^。\n]{0,10}(?:指令|指示|说明|說明|提示|命令|规则|規則|要求|内容)",
            r"(?:以前|これまで|今まで|上記|前|先ほど|元|システム|すべて|全て)の?[^。\n]{0,8}(?:指示|命令|プロンプト|ルール|指令|制約)[^。\n]{0,10}(?:無視|忘れ|従わない|破棄|無効)",
            r"(?:이전|위의|앞의|기존|모든|지금까지)[^.\n]{0,12}(?:지시|명령|지침|프롬프트|규칙)[^.\n]{0,10}(?:무시|잊어|따르지)",
            r"(?:تجاهل|انس|تجاهلوا)[^.\n]{0,20}(?:التعليمات|الأوامر|الإرشادات)[^.\n]{0,12}(?:السابقة|أعلاه)|(?:पिछले|पहले के|ऊपर के)[^।\n]{0,12}(?:निर्देश|आदेश)\S*[^।\n]{0,12}(?:अनदेखा|भूल|नज़रअंदाज़)",
        ],
    ),
    (
        "exfiltration",
        45,
        &[
            r"\b(?:sende|schicke|leite)\b[^.\n]{0,60}\b(?:passw\w+|schlüssel|zugangsdaten|geheimnis\w*)\b[^.\n]{0,30}\ban\b|\b(?:envoie|envoyez|transmets)\b[^.\n]{0,60}\b(?:mots? de passe|clés?|identifiants|secrets)\b|\b(?:envía|envia|manda)\b[^.\n]{0,60}\b(?:contraseñas?|claves?|credenciales|secretos)\b|(?:отправ\w+|пришли\w*|перешли\w*)[^.\n]{0,60}(?:парол|ключ|секрет|учетн)\w*|(?:发送|傳送|发到|上传)[^。\n]{0,20}(?:密码|密碼|密钥|密鑰|凭据|令牌)|(?:密码|密钥|凭据|令牌)[^。\n]{0,20}(?:发送|发到|上传)|(?:パスワード|鍵|認証情報|秘密)[^。\n]{0,20}送(?:信|って|れ)",
        ],
    ),
    (
        "secrecy",
        40,
        &[
            r"(?:不要|别|請勿|请勿)(?:告诉|告知|通知|提及)[^。\n]{0,6}(?:用户|用戶|任何人)|ユーザー?に(?:は)?[^。\n]{0,8}(?:言わない|知らせない|伝えない|教えない)|\b(?:sag|sage|verrate|erzähle)\b[^.\n]{0,20}\b(?:nutzer|benutzer|anwender)\b[^.\n]{0,15}\b(?:nicht|nichts)|\bsans (?:le dire|prévenir|informer)[^.\n]{0,12}utilisateur|\bsin (?:decir|avisar|informar)[^.\n]{0,12}usuario|не (?:говори|сообщай|рассказывай)\w*[^.\n]{0,12}пользовател\w*",
        ],
    ),
];

/// The first signal in text of letters alone: with spaces, signs or digits between or for them.
pub(super) const DENSE: &[&str] = &[
    r"(?:ignore|disregard|forget|bypass|override)(?:all|any|every)?(?:of)?(?:the|your|my|these|those)?(?:previous|prior|above|preceding|earlier|original|system|past)(?:system)?(?:instruction|prompt|directive|guideline|rule|order|command)",
    r"(?:ignore|disregard|forget)(?:all|any)(?:of)?(?:the|your|these)?(?:instructions|directives|guidelines)",
    r"(?:reveal|print|show|output|repeat|leak)(?:me)?(?:your|the)(?:full|entire|complete)?(?:system|hidden|secret)?(?:prompt|instructions)",
    r"youarenow(?:dan|unrestricted|jailbroken|indevelopermode)",
    r"(?:donottell|donttell|withouttelling)theuser",
];
/// How much such text counts.
pub(super) const DENSE_WEIGHT: u32 = 80;

/// Texts that are not seen: how much they count by themselves, and that of another signal in them.
pub(super) const TAGS_WEIGHT: u32 = 80;
pub(super) const SELECTORS_WEIGHT: u32 = 75;
pub(super) const INVISIBLE_WEIGHT: u32 = 35;
pub(super) const DIRECTION_WEIGHT: u32 = 25;
/// What is added when a signal stands in text that is hidden: in comments, in styles that hide, encoded.
pub(super) const HIDDEN_WEIGHT: u32 = 30;

/// Text that is about such attacks and not one of them.
pub(super) const ABOUT: &str = r"(?i)prompt[- ]injection|jailbreak|\battack(?:s|er|ers|ing)?\b|adversar|red[- ]team|owasp|malicious|payload|guardrail|phrases? (?:like|such as)|such as|for example|for instance|\be\.g\.|\bdetect|\bclassif|\bfilter|test case|example of|chat template|special token|tokeniz|exploit|vulnerab|mitigat|untrusted|sanitiz|defen[cs]e|beispielsweise|angriff|par exemple|attaque|por ejemplo|ataque|攻击|注入|攻撃|инъекц|атак";
/// Words before a signal that make it no command: it is negated, or describes another actor.
pub(super) const NEGATED: &str = r"(?i)(?:\b(?:do not|don't|don’t|never|must not|should not|cannot|can't|won't|will not|does not|doesn't|not|refuse(?:s|d)? to|instead of|rather than|(?:my|the|a|some|most|your) (?:model|llm|agent|bot)|models|llms|agents|it|they|we|users?|people)\s+(?:\w+\s+){0,1})$";
/// Words after a signal that make it no command to every reader.
pub(super) const CONDITIONED: &str = r"(?i)^[^.\n]{0,20}\b(?:if (?:you(?:'ve| have)? (?:already|are not|were not|did not|do not|don't)|you have|it does|your|already|this (?:does|is not))|unless)\b";
/// Styles and markup that hide text from readers.
pub(super) const HIDING: &str = r"(?i)<!--|display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*(?:0|1px|0\.\d)|opacity\s*:\s*0(?:\.0\d*)?\s*[;\x22']|color\s*:\s*(?:white|#fff(?:fff)?)\b|position\s*:\s*absolute\s*;\s*left\s*:\s*-\d{3,}|aria-hidden|\[//\]: #|<template\b|alt\s*=\s*[\x22']|title\s*=\s*[\x22']";
