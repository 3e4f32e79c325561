"""Rules on what one does for a living, and with which tools."""

from __future__ import annotations

from .rules_rule import FACT, HABIT, PREFERENCE, Rule

__all__ = ["WORK"]

WORK = (
    # Work and study
    Rule(
        FACT,
        r"as an? (?P<role>(?:[\w-]+ ){0,2}?{occupation}|(?:[\w-]+ )?{role}), (?=I\b|my\b)",
        "Is a {role}",
        None,
        0.8,
    ),
    Rule(
        FACT,
        r"I {adv}(?:work|am working|am employed)(?: now| full[- ]time| part[- ]time)? as "
        r"(?P<role>(?:an?|the) .+)",
        "Works as {role}",
        None,
        0.9,
    ),
    Rule(
        FACT,
        r"I (?:no longer work|do not work|stopped working) (?P<how>at|for) (?P<place>{Place})",
        "No longer works {how} {place}",
        None,
        0.9,
        ends=("Works {how} {place}",),
    ),
    Rule(
        FACT,
        r"I (?:just |recently )?(?:quit|left|resigned from|got fired from|was fired from|lost) "
        r"my job (?P<how>at|with) (?P<place>{Place})",
        "No longer works at {place}",
        None,
        0.9,
        ends=("Works at {place}",),
    ),
    Rule(
        FACT,
        r"I {adv}(?:quit|left|lost) my (?:old )?job as (?P<role>an? (?:[\w-]+ "
        r"){0,3}?{occupation})",
        "No longer works as {role}",
        None,
        0.9,
        ends=("Works as {role}", "Is {role}"),
    ),
    Rule(
        FACT,
        r"I (?:have )?{adv}(?P<how>quit|left|lost) my (?:old )?job\b",
        "Has {how} their job",
        "employer",
        0.85,
    ),
    Rule(
        FACT,
        r"I {adv}(?P<how>joined|signed up for) (?P<thing>(?:an? |the (?-i:[A-Z])).*)",
        "{how} {thing}",
        None,
        0.75,
    ),
    Rule(
        FACT,
        r"I am {adv}(?:an? )?(?:active |proud )?(?:part|member) of {thing}",
        "Is a member of {thing}",
        None,
        0.75,
    ),
    Rule(
        FACT,
        r"I {adv}(?:work|am working)(?: now| full[- ]time| part[- ]time)? (?P<how>at|for) "
        r"(?P<place>{Place})",
        "Works {how} {place}",
        "employer",
        0.9,
        ends=("Is unemployed",),
    ),
    Rule(
        FACT,
        r"I (?:just |recently )?(?:started (?:working|a new job)|got a (?:new )?job) (?:at|with) "
        r"(?P<place>{Place})",
        "Works at {place}",
        "employer",
        0.85,
    ),
    Rule(
        FACT,
        r"I {adv}work (?P<rest>with (?:children|kids|people|animals|horses|seniors|refugees|"
        r"patients|students|clients|teenagers|adults|families)\b|in (?!progress|the morning|"
        r"order|advance|vain|secret)\S.*|from home\b|remotely\b|nights\b|night shifts\b|part[- "
        r"]time\b|full[- ]time\b|freelance\b)",
        "Works {rest}",
        None,
        0.8,
    ),
    Rule(
        FACT,
        r"I {am} an? (?P<role>(?:(?!not\b|the\b)[\w-]+ ){0,3}?{occupation})(?P<rest>(?: (?:at|"
        r"for|in|with|from|on) .*)?)$",
        "Is a {role} {rest}",
        None,
        0.9,
    ),
    Rule(
        FACT,
        r"I {am} an? (?P<role>(?:(?!not\b|the\b)[\w-]+ ){0,3}?{occupation}){end}",
        "Is a {role}",
        None,
        0.9,
    ),
    Rule(
        FACT,
        r"I {adv}(?P<do>study|major in|teach) {thing}",
        "{do} {thing}",
        None,
        0.85,
    ),
    Rule(
        FACT,
        r"I {am} (?P<how>studying|majoring in|teaching|taking(?= an? .*(?:class|course|lessons))|"
        r"doing(?= an? (?:phd|master|degree|bachelor|bootcamp|residency|apprenticeship))|looking "
        r"for(?= an? (?:new )?(?:job|apartment|flat|house|home|position|role|internship|roommate|"
        r"mentor)\b)|volunteering (?:at|with)|living with) {thing}",
        "Is {how} {thing}",
        None,
        0.8,
    ),
    Rule(
        FACT,
        r"I (?:have )?(?:just |recently )?(?P<how>graduated) (?P<rest>(?:from|with|in) .*)",
        "{how} {rest}",
        None,
        0.85,
    ),
    Rule(
        FACT,
        r"I (?P<do>have|hold|have got|got) (?P<thing>an? (?:[\w']+ )?(?:degree|phd|doctorate|"
        r"master's|bachelor's|diploma|mba)(?: degree)?(?: in .*)?)",
        "Has {thing}",
        None,
        0.9,
    ),
    Rule(
        FACT,
        r"I {adv}(?P<do>manage|lead) (?P<thing>an? (?:small |large )?team\b.*)",
        "{do} {thing}",
        None,
        0.8,
    ),
    Rule(
        FACT,
        r"I (?:have )?(?:just |recently )?(?P<how>started|opened|launched|founded|co-founded) "
        r"(?P<thing>(?:my own|an?|my) (?:[\w-]+ ){0,3}?(?:business|shop|store|studio|company|"
        r"startup|start-up|restaurant|bakery|cafe|café|farm|blog|podcast|channel|salon|gallery|"
        r"agency|newsletter|band|charity)\b)",
        "{how} {thing}",
        None,
        0.8,
    ),
    Rule(
        FACT,
        r"I have never (?:actually |really )?(?P<how>been to|tried|played|seen|learned|learnt|"
        r"owned|read|watched|used|visited|ridden|driven) (?P<rest>.+?)(?: before)?$",
        "Has never {how} {rest}",
        None,
        0.75,
    ),
    Rule(
        FACT,
        r"I have (?:also |already )?(?P<how>been to|lived in|visited|worked as|worked at|"
        r"travelled to|traveled to) (?P<rest>(?!a (?:few|bunch|lot|couple|number)|many|some|"
        r"several|lots|it|that).+)",
        "Has {how} {rest}",
        None,
        0.75,
    ),
    Rule(
        FACT,
        r"I {am} (?P<how>(?:good|great|bad|terrible|awful|not good) at) {thing}",
        "Is {how} {thing}",
        "at:{thing}",
        0.75,
    ),
    Rule(
        FACT,
        r"I (?P<do>run|own|have)(?: my own| a| an) (?P<thing>(?:[\w-]+ ){0,3}?(?:business|shop|"
        r"store|studio|company|startup|start-up|restaurant|bakery|cafe|café|farm|blog|podcast|"
        r"channel|bookshop|salon|gallery|agency|newsletter|band|house|flat|apartment|cottage|"
        r"cabin|garden|allotment|car|boat|motorbike|motorcycle|van|truck|piano|guitar|telescope|"
        r"drone)\b(?: called .*| named .*)?)",
        "{do} a {thing}",
        None,
        0.85,
    ),
    # Tools
    Rule(
        PREFERENCE,
        r"(?:I|we) (?:have )?{adv}(?:switched|migrated|moved)(?: over)? from "
        r"(?P<other>[\w.+#-]+(?: [\w.+#-]+)?) to (?P<thing>\S.*)",
        "Uses {thing} instead of {other}",
        "use:{other}",
        0.85,
        ends=("Uses {other}",),
    ),
    Rule(
        PREFERENCE,
        r"(?:I|we) (?:have )?{adv}switched(?: over)? to {thing}",
        "Uses {thing}",
        "use:{thing}",
        0.75,
    ),
    Rule(
        HABIT,
        r"I used to (?P<do>[a-z]+)(?P<rest>.*?),? (?:but|and) (?:now|these days|nowadays|not any "
        r"?more|(?:I )?(?:do not|no longer|stopped|quit|gave (?:it )?up)\b)",
        "No longer {do} {rest}",
        "{do}:{rest}",
        0.85,
        ends=("{do} {rest}",),
    ),
    Rule(
        HABIT,
        r"I used to (?P<do>[a-z]+)(?P<rest>.*)",
        "No longer {do} {rest}",
        "{do}:{rest}",
        0.8,
        ends=("{do} {rest}",),
        only_known=True,
    ),
    Rule(
        PREFERENCE,
        r"I {adv}(?:no longer (?P<do>like|love|enjoy|want|need|use|play|drink|eat|do|own|drive|"
        r"go|watch|read|teach|study|have|speak|practise|practice|run|work|smoke))(?P<rest>.*)",
        "No longer {do} {rest}",
        "{do}:{rest}",
        0.9,
        ends=("{do} {rest}",),
    ),
    Rule(
        PREFERENCE,
        r"I {adv}do not {adv}(?P<do>like|love|enjoy|use|play|drink|eat|own|drive|watch|teach|"
        r"study|smoke)(?P<rest> .*?) (?:anymore|any more|any longer)\b",
        "No longer {do} {rest}",
        "{do}:{rest}",
        0.9,
        ends=("{do} {rest}",),
    ),
    Rule(
        PREFERENCE,
        r"I (?:have )?{adv}(?:stopped|quit|gave up|given up) (?:using) {thing}",
        "No longer uses {thing}",
        "use:{thing}",
        0.9,
        ends=("Uses {thing}",),
    ),
    Rule(
        PREFERENCE,
        r"(?:I|we) {adv}(?:do not|never) {adv}use {thing}",
        "Does not use {thing}",
        "use:{thing}",
        0.85,
    ),
    Rule(
        PREFERENCE,
        r"my (?:main |default |preferred |usual )?(?P<what>editor|ide|shell|terminal|browser|os|"
        r"operating system|distro|window manager|search engine|password manager) is "
        r"(?P<thing>(?!not\b|too\b|so\b|very\b|on\b|in\b|at\b|down\b|broken\b|slow\b|old\b|an? "
        r"(?:mess|bit)|\w+(?:ing|ed)\b)\S.*)",
        "Their {what} is {thing}",
        "{what}",
        0.85,
    ),
    Rule(
        FACT,
        r"my (?:main |daily )?(?P<what>phone|laptop|computer|car|bike|camera|keyboard|motorbike|"
        r"tablet) is (?P<thing>an? (?!bit|mess|disaster|piece|wreck|brick|problem|nightmare)\S.*)",
        "Their {what} is {thing}",
        "{what}",
        0.8,
    ),
    Rule(
        PREFERENCE,
        r"I {am} (?:on|running) (?P<thing>(?:windows|macos|mac os|linux|ubuntu|arch|debian|"
        r"fedora|nixos|android|ios)\b.*)",
        "Uses {thing}",
        "use:{thing}",
        0.75,
    ),
    Rule(
        PREFERENCE,
        r"I {adv}(?P<do>code|program|write|develop) (?P<rest>(?:mostly |mainly |primarily )?in "
        r"(?-i:[A-Z])[\w+#.]*(?:(?:, | and |, and )(?-i:[A-Z])[\w+#.]*)*)",
        "{do} {rest}",
        None,
        0.8,
    ),
    Rule(
        PREFERENCE,
        r"(?:I|we) {adv}use (?P<thing>(?!to\b).+)",
        "Uses {thing}",
        "use:{thing}",
        0.8,
    ),
)
