"""Rules on goals, habits, and instructions to the assistant."""

from __future__ import annotations

from .rules_rule import GOAL, HABIT, INSTRUCTION, Rule

__all__ = ["DOINGS"]

DOINGS = (
    # Goals
    Rule(
        GOAL,
        r"my (?:main |biggest |ultimate |long-term |big |new )?(?:goal|dream|aim|ambition|plan) "
        r"(?:is|has"
        r" always been) to {act}",
        "Wants to {act}",
        None,
        0.85,
    ),
    Rule(
        GOAL,
        r"I do not want to (?P<act>{aim}\b.*?)(?: anymore| any more)?$",
        "Does not want to {act}",
        "want:{act}",
        0.75,
    ),
    Rule(
        GOAL,
        r"I (?:have )?{adv}(?:want|dream of|am hoping|aim|aspire|hope|am aiming|"
        r"am training|am studying|am preparing) (?:to |(?=being|becoming|opening|owning))"
        r"(?P<act>(?:one day |eventually )?(?:{aim}|being|becoming|opening|owning)\b.*)",
        "Wants to {act}",
        "want:{act}",
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
        r"I {am} (?:trying|determined) to (?P<act>(?:lose|quit|stop|learn|eat|"
        r"get (?:fit|in"
        r"|better|more|into|my)|exercise|sleep|save|improve|become|reduce|drink|cut|give up|"
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
        r"I {am} (?P<how>learning|training for|saving up for|"
        r"saving for|"
        r"studying for|working towards?|preparing for|practising|practicing) {thing}",
        "Is {how} {thing}",
        "goal:{thing}",
        0.75,
    ),
    Rule(
        GOAL,
        r"I {am} (?:currently )?working on (?P<thing>(?:an?|my) "
        r"(?!(?:(?:new|big|secret|cool|exciting|small|fun|personal|few) )*(?:project|something|"
        r"it|thing|things|stuff)\b).*)",
        "Is working on {thing}",
        "goal:{thing}",
        0.7,
    ),
    # Habits
    Rule(
        HABIT,
        r"(?:I|we) (?P<how>{often}) {do}{rest}",
        "{how} {do} {rest}",
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
        r"done|gone|seen|\w+ed)\b)"
        r"{do}(?! not\b)(?P<rest>(?: .*?)? {frequency})(?=$|[,(]| (?:and|but|with|to|in|at|for|"
        r"so|because|"
        r"before|after|during|when|while|since|as)\b)",
        "{do} {rest}",
        None,
        0.8,
        is_definite=True,
    ),
    Rule(
        HABIT,
        r"I {adv}do (?P<thing>yoga|pilates|karate|judo|taekwondo|crossfit|ballet|gymnastics|"
        r"ceramics|"
        r"pottery|calligraphy|photography|woodworking|martial arts|stand-up comedy|freelance work)"
        r"(?P<rest>.*)",
        "Does {thing} {rest}",
        None,
        0.8,
    ),
    Rule(
        HABIT,
        r"I {adv}(?P<do>run|write) (?P<thing>(?:half[- ])?marathons|\d+ ?ks?\b|ultramarathons|"
        r"poetry|"
        r"poems|songs|novels|fiction|music|short stories|screenplays|plays|lyrics|stories)",
        "{do} {thing}",
        None,
        0.8,
    ),
    Rule(
        HABIT,
        r"I {adv}(?P<do>{activity})(?P<rest>(?: (?!it\b|this\b|that\b|into\b|out\b|up\b|the "
        r"(?!piano|"
        r"guitar|violin|cello|drums|flute|trumpet|saxophone|clarinet|harp|organ|bass|ukulele|"
        r"banjo|"
        r"viola|trombone|accordion)).*)?)",
        "{do} {rest}",
        "{do}:{rest}",
        0.75,
        is_definite=True,
    ),
    Rule(
        HABIT,
        r"(?:I|we) have been (?P<doing>playing|learning|studying|practising|practicing|teaching|"
        r"using|"
        r"running|painting|volunteering|collecting|coaching|meditating|journaling|gardening|"
        r"cooking|"
        r"writing|dancing|doing (?!great|well|good|ok|okay|fine|alright|better|a lot|lots|some)|"
        r"going to|taking|attending|living|working (?:at|as|in|for))(?P<rest> (?!around\b|a "
        r"lot\b|it\b|this\b|that\b|some\b|on it\b).*)",
        "Has been {doing} {rest}",
        None,
        0.75,
    ),
    # Instructions to the assistant
    Rule(
        INSTRUCTION,
        r"(?:please )?(?:from now on|in (?:the )?future|going forward|moving forward|"
        r"henceforth),? "
        r"(?:please )?(?:you (?:should|must|can) )?(?P<how>always |never |do not |"
        r")(?P<act>{assist}\b.*)",
        "Wants the assistant to {how} {act}",
        None,
        0.9,
        is_definite=True,
    ),
    Rule(
        INSTRUCTION,
        r"(?:please )?(?:can you |could you )?(?P<how>always |never |do not |"
        r")(?P<act>{assist}\b.*?),? "
        r"(?:from now on|in (?:the )?future|going forward|moving forward)$",
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
        r"(?:please )?(?:do not|stop) (?:ever )?(?P<act>{assist}\b.*?) (?:ever again|ever|again|"
        r"any ?more|"
        r"in (?:your|any|future) \w+)$",
        "Wants the assistant to not {act}",
        None,
        0.8,
        is_definite=True,
    ),
    Rule(
        INSTRUCTION,
        r"I (?:want|need|prefer|expect) you to (?P<how>always|never) (?P<act>{assist}\b.*)",
        "Wants the assistant to {how} {act}",
        None,
        0.9,
        is_definite=True,
    ),
)
