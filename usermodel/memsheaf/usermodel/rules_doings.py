"""Rules on goals, habits, and instructions to the assistant."""

from __future__ import annotations

from .rules_rule import GOAL, HABIT, INSTRUCTION, Rule

__all__ = ["DOINGS"]

DOINGS = (
    # Goals
    Rule(
        GOAL,
        r"my (?:main |biggest |ultimate |long-term |big |new )?(?:goal|dream|aim|ambition|plan|"
        r"resolution)(?: (?:for|this|in) [\w ]{1,20}?)? (?:is|has always been) to {act}",
        "Wants to {act}",
        None,
        0.85,
    ),
    Rule(
        GOAL,
        r"I do not want to (?!spend (?:more|less)\b)(?P<act>{aim}\b.*?)(?: anymore| any more)?$",
        "Does not want to {act}",
        "want:{act}",
        0.75,
    ),
    Rule(
        GOAL,
        r"I (?:have )?{adv}(?:want|dream of|am hoping|aim|aspire|hope|am aiming|am training|am "
        r"studying|am preparing) (?:to |(?=being|becoming|opening|owning))(?P<act>(?:one day |"
        r"eventually )?(?:{aim}|being|becoming|opening|owning)\b.*)",
        "Wants to {act}",
        "want:{act}",
        0.75,
    ),
    Rule(
        GOAL,
        r"I {adv}dream of (?P<thing>\w+ing .*)",
        "Dreams of {thing}",
        None,
        0.75,
    ),
    Rule(
        GOAL,
        r"I (?:have always wanted|have wanted) to (?P<act>{aim}.*)",
        "Wants to {act}",
        "want:{act}",
        0.75,
    ),
    Rule(
        GOAL,
        r"I {am} (?:trying|determined) to (?P<act>(?:lose|quit|stop|learn|eat|get (?:fit|in|"
        r"better|more|into|my)|exercise|sleep|save|improve|become|reduce|drink|cut|give up|"
        r"spend)\b.*)",
        "Wants to {act}",
        "want:{act}",
        0.7,
    ),
    Rule(
        GOAL,
        r"I (?:have )?{adv}(?:am )?(?:plan|planning|decided|intend|intending) (?:to|on) "
        r"(?P<act>{aim}\b.*)",
        "Plans to {act}",
        "want:{act}",
        0.7,
    ),
    Rule(
        GOAL,
        r"I {am} (?P<how>learning|training for|saving up for|saving for|studying for|working "
        r"towards?|preparing for|practising|practicing) {thing}",
        "Is {how} {thing}",
        "goal:{thing}",
        0.75,
    ),
    Rule(
        GOAL,
        r"I {am} (?:currently )?working on (?P<thing>(?:an?|my) (?!(?:(?:new|similar|current|big|"
        r"secret|cool|exciting|small|fun|personal|few) )*(?:project|report|proposal|presentation|"
        r"email|letter|ticket|bug|assignment|homework|task|something|it|thing|things|stuff)\b).*)",
        "Is working on {thing}",
        "goal:{thing}",
        0.7,
    ),
    # Habits
    Rule(
        HABIT,
        r"I {adv}do (?P<thing>yoga|pilates|karate|judo|taekwondo|crossfit|ballet|gymnastics|"
        r"ceramics|pottery|calligraphy|photography|woodworking|martial arts|stand-up comedy|"
        r"freelance work)(?P<rest>.*)",
        "Does {thing} {rest}",
        None,
        0.8,
    ),
    Rule(
        HABIT,
        r"(?:I|we) (?P<how>{often}) (?={activity}|\S+ (?!because\b|but\b|and\b|so\b|when\b))"
        r"{do}{rest}",
        "{how} {do} {rest}",
        None,
        0.75,
        is_definite=True,
    ),
    Rule(
        HABIT,
        r"(?:I|we) {adv}(?P<do>go) (?P<rest>(?:hiking|running|camping|swimming|climbing|cycling|"
        r"dancing|fishing|skiing|surfing|sailing|jogging|birdwatching|bouldering|kayaking|"
        r"snowboarding|horse riding)\b.*)",
        "{do} {rest}",
        None,
        0.75,
        is_definite=True,
    ),
    Rule(
        HABIT,
        r"I {adv}(?P<do>spend) (?P<rest>(?:a lot of|most of|much of|my free|all) ?(?:of )?(?:my "
        r")?(?:free )?time \w+ing.*)",
        "{do} {rest}",
        None,
        0.75,
        is_definite=True,
    ),
    Rule(
        HABIT,
        r"I {adv}(?P<do>keep) (?P<rest>an? (?:[\w-]+ )?(?:journal|diary|notebook|log|blog|"
        r"garden))",
        "{do} {rest}",
        None,
        0.75,
    ),
    Rule(
        HABIT,
        r"(?P<when>{frequency}|in the (?:mornings|evenings|afternoons|summer|winter)),? (?:I|we) "
        r"{adv}(?!have (?:\w+ly |even |also |just |never |both )?(?:been|got|had|made|taken|done|"
        r"gone|seen|\w+ed)\b){do}(?P<rest>(?: .*)?)",
        "{do} {rest} {when}",
        None,
        0.75,
        is_definite=True,
    ),
    Rule(
        HABIT,
        r"I tend to {act}",
        "Tends to {act}",
        None,
        0.75,
        is_definite=True,
    ),
    Rule(
        HABIT,
        r"I never (?!give\b){do}{rest}",
        "Never {do} {rest}",
        None,
        0.75,
        is_definite=True,
    ),
    Rule(
        HABIT,
        r"(?:I|we) {adv}(?!go (?:{number}|a few|a couple|every|once|twice|often|there|"
        r"on)\b)(?!have (?:\w+ly |even |also |just |never |both )?(?:been|got|had|made|taken|"
        r"done|gone|seen|\w+ed)\b){do}(?! not\b)(?P<rest>(?: (?:(?! I\b)[^,])*?)? {frequency})"
        r"(?=$|[,(]| (?:and|but|with|to|in|at|for|so|because|before|after|during|when|while|since|"
        r"as)\b)",
        "{do} {rest}",
        None,
        0.8,
        is_definite=True,
    ),
    Rule(
        HABIT,
        r"I {adv}(?P<do>run|write) (?P<thing>(?:half[- ])?marathons|\d+ ?ks?\b|ultramarathons|"
        r"poetry|poems|songs|novels|fiction|music|short stories|screenplays|plays|lyrics|stories)",
        "{do} {thing}",
        None,
        0.8,
    ),
    Rule(
        HABIT,
        r"I {adv}(?P<do>{activity})(?! (?:it|this|that|into|out|up|the (?!piano|guitar|violin|"
        r"cello|drums|flute|trumpet|saxophone|clarinet|harp|organ|bass|ukulele|banjo|viola|"
        r"trombone|accordion|oboe|bassoon|tuba|horn|french horn|double bass|mandolin|keyboards?|"
        r"bagpipes|recorder|harmonica|fiddle|lute|cornet))\b){rest}",
        "{do} {rest}",
        "{do}:{rest}",
        0.75,
        is_definite=True,
    ),
    Rule(
        HABIT,
        r"(?:I|we) have been (?P<doing>playing|learning|studying|practising|practicing|teaching|"
        r"using|running|painting|volunteering|collecting|coaching|meditating|journaling|"
        r"gardening|cooking|writing|dancing|doing (?!great|well|good|ok|okay|fine|alright|better|"
        r"a lot|lots|some)|going to|taking|attending|living|working (?:at|as|in|for))(?P<rest> "
        r"(?!around\b|one\b|mine\b|a lot\b|it\b|this\b|that\b|some\b|on it\b).*)",
        "Has been {doing} {rest}",
        None,
        0.75,
    ),
    # Instructions to the assistant
    Rule(
        INSTRUCTION,
        r"(?:please )?(?:(?:from now on|in (?:the )?future|going forward|moving forward|"
        r"henceforth),? )?(?:please )?(?:always |only )*(?P<how>speak|talk|reply|answer|"
        r"respond|write) (?:to me )?(?:only |always )*in (?P<plain>{language})(?:,? (?:from now "
        r"on|please|only|always))*$",
        "Wants the assistant to {how} in {plain}",
        "answer language",
        0.85,
    ),
    Rule(
        INSTRUCTION,
        r"(?:please )?(?:from now on|in (?:the )?future|going forward|moving forward|"
        r"henceforth),? (?:please )?(?:you (?:should|must|can) )?(?P<how>always |never |do not |"
        r")(?P<act>{assist}\b.*)",
        "Wants the assistant to {how} {act}",
        None,
        0.9,
        is_definite=True,
    ),
    Rule(
        INSTRUCTION,
        r"(?:please )?(?:can you |could you )?(?P<how>always |never |do not |"
        r")(?P<act>{assist}\b.*?),? (?:from now on|in (?:the )?future|going forward|moving "
        r"forward)$",
        "Wants the assistant to {how} {act}",
        None,
        0.9,
        is_definite=True,
    ),
    Rule(
        INSTRUCTION,
        r"(?:please )?(?:remember to |make sure to |make sure you )?(?P<how>always|never) "
        r"(?P<act>{assist}\b.*)",
        "Wants the assistant to {how} {act}",
        None,
        0.85,
        is_definite=True,
    ),
    Rule(
        INSTRUCTION,
        r"(?:please )?keep (?:your|all|all your) (?P<plain>answers|replies|responses|"
        r"explanations)(?P<rest> .*)",
        "Wants the assistant to keep {plain} {rest}",
        None,
        0.85,
    ),
    Rule(
        INSTRUCTION,
        r"(?:please )?(?:do not|stop) (?:ever )?(?P<act>{assist}\b.*?) (?:ever again|ever|again|"
        r"any ?more|in (?:your|any|future) \w+)$",
        "Wants the assistant to not {act}",
        None,
        0.8,
        is_definite=True,
    ),
    Rule(
        INSTRUCTION,
        r"(?:please )?(?:do not|stop) (?:ever )?(?P<act>{assist}\b.*?) (?:when|while) you "
        r"(?:are )?(?:answer|reply|respond|write|talk|explain)(?:ing)?\b",
        "Wants the assistant to not {act}",
        None,
        0.8,
        is_definite=True,
    ),
    Rule(
        INSTRUCTION,
        r"(?:please )?(?:do not|never|stop) call(?:ing)? me (?P<plain>(?!back|today|tonight|"
        r"tomorrow|now|later|that|this|it|an?\b|the|out|at|on|in|up|when|if|after|before|so\b)"
        r"[\w'-]+(?: [\w'-]+)?)(?: again| any ?more|,? please)?$",
        "Does not want to be called {plain}",
        None,
        0.85,
        ends=("Is called {plain}",),
    ),
    Rule(
        INSTRUCTION,
        r"I (?:want|need|prefer|expect|would (?:like|love|prefer)) you to (?P<how>always|never) "
        r"(?P<act>{assist}\b.*)",
        "Wants the assistant to {how} {act}",
        None,
        0.9,
        is_definite=True,
    ),
)
