"""Rules on what one likes and dislikes, and holds important."""

from __future__ import annotations

from .rules_rule import FACT, HABIT, PREFERENCE, Rule

__all__ = ["LIKES"]

LIKES = (
    # Likes and dislikes
    Rule(
        PREFERENCE,
        r"my (?:all[- ]time )?(?P<plain>least favourite|favourite) (?P<what>(?!part|thing|one|"
        r"ones|moment|memory|memories|pic|photo|bit|place to|of\b|so\b|is\b|are\b)[\w'-]+(?: "
        r"[\w'-]+){0,3}?) (?:is|are|has always been) (?P<thing>(?:the\s+)?\S.*)",
        "Their {plain} {what} is {thing}",
        "{plain}:{what}",
        0.9,
        is_definite=True,
    ),
    Rule(
        PREFERENCE,
        r"I {adv}prefer (?P<thing>.+?) (?:over|to|rather than|instead of) (?P<other>(?!(?:be|"
        r"have|include|make|get|keep|avoid|do|see|use|ensure|help|allow|give|take|go|start|finish|"
        r"stay|save)\b)\S.*)",
        "Prefers {thing} to {other}",
        "prefer:{thing}|{other}",
        0.9,
    ),
    Rule(
        PREFERENCE,
        r"I {adv}prefer (?P<thing>(?!if\b|when\b|not\b).+)",
        "Prefers {thing}",
        "like:{thing}",
        0.85,
    ),
    Rule(
        PREFERENCE,
        r"I {am} not {adv}interested in {thing}",
        "Is not interested in {thing}",
        "like:{thing}",
        0.8,
    ),
    Rule(
        PREFERENCE,
        r"I {am} (?:not {adv}(?:an? )?(?:(?:big|huge|great|real|massive|much of an?) )*(?:fan of|"
        r"fond of|keen on|into|crazy about|a lover of))(?: an?)? {thing}",
        "Does not like {thing}",
        "like:{thing}",
        0.85,
    ),
    Rule(
        PREFERENCE,
        r"(?:not|never been) (?:an? )?(?:(?:big|huge|great|real|massive|much of an?) )*(?:fan of|"
        r"fond of|keen on) {thing}",
        "Does not like {thing}",
        "like:{thing}",
        0.75,
    ),
    Rule(
        PREFERENCE,
        r"I {adv}(?:do not|never) {adv}(?:like|enjoy|love|care for|fancy) {thing}",
        "Does not like {thing}",
        "like:{thing}",
        0.85,
    ),
    Rule(
        PREFERENCE,
        r"I {adv}(?:cannot stand|cannot bear|hate|despise|loathe|detest) {thing}",
        "Hates {thing}",
        "like:{thing}",
        0.85,
    ),
    Rule(
        PREFERENCE,
        r"I (?:have )?never (?:really )?(?:liked|enjoyed) {thing}",
        "Does not like {thing}",
        "like:{thing}",
        0.8,
    ),
    Rule(
        PREFERENCE,
        r"I {adv}cannot (?:live|function) without {thing}",
        "Cannot live without {thing}",
        "like:{thing}",
        0.8,
    ),
    Rule(
        PREFERENCE,
        r"I {am} an? (?:(?:big|huge|great|real|massive|lifelong|die-hard|avid|total) "
        r")*(?P<thing>(?!not\b|the\b)[\w'-]+(?: [\w'-]+){0,3}?) fan{end}",
        "Is a {thing} fan",
        "like:{thing}",
        0.8,
    ),
    Rule(PREFERENCE, r"I {adv}dislike {thing}", "Dislikes {thing}", "like:{thing}", 0.85),
    Rule(
        PREFERENCE,
        r"I {am} (?:an? )(?:(?:big|huge|great|real|massive|lifelong|die-hard|avid|total|such an?|"
        r"long-?time) )*(?:fan of|lover of|fan) (?:of )?{thing}",
        "Is a fan of {thing}",
        "like:{thing}",
        0.85,
    ),
    Rule(
        PREFERENCE,
        r"I {am} an? (?:(?:big|firm|strong|great|huge) )*believer in {thing}",
        "Believes in {thing}",
        "like:{thing}",
        0.8,
    ),
    Rule(
        PREFERENCE,
        r"I (?!am (?:\w+ )?(?:particularly|specifically|especially|mainly|mostly) interested\b)"
        r"{am} (?P<how>into|fond of|keen on|passionate about|interested in(?! (?:the\b|an?\b|"
        r"learning more|learning$|learning about the|(?!learn|study|becom|work|volunteer|"
        r"teach)\w+ing\b|\"|how\b|what\b|some\b|other\b|more\b|options))|obsessed with|crazy "
        r"about|addicted to) {thing}",
        "Is {how} {thing}",
        "like:{thing}",
        0.8,
    ),
    Rule(
        FACT,
        r"I {am} (?P<how>afraid of|scared of|terrified of) {thing}",
        "Is {how} {thing}",
        "fear:{thing}",
        0.8,
    ),
    Rule(
        PREFERENCE,
        r"I (?:have {adv}(?P<did>loved|liked|enjoyed|hated)|{adv}(?P<do>love|like(?! the "
        r"(?-i:[A-Z]|sound|idea|look))|enjoy|adore)) {thing}",
        "{do} {did} {thing}",
        "like:{thing}",
        0.8,
    ),
    Rule(
        PREFERENCE,
        r"(?P<what>(?!it\b|that\b|this\b|they\b|he\b|she\b|these\b|those\b|which\b|what\b|who\b|"
        r"one\b|you|there\b|here\b|I\b)(?:[\w'-]+ ){1,5}?)(?:is|are) (?P<how>my|one of my|among "
        r"my) {adv}(?:all[- ]time )?(?P<plain>favourites?) ?(?P<rest>.*)",
        "{what} is {how} {plain} {rest}",
        None,
        0.8,
    ),
    Rule(
        HABIT,
        r"(?P<what>(?!it\b|that\b|this\b|they\b|he\b|she\b|these\b|those\b|which\b|what\b|"
        r"one\b)\S.*?) (?P<be>is|are) (?P<plain>my (?:main |biggest |favourite )?(?:hobby|"
        r"hobbies|passion|passions|outlet|escape|stress relief|happy place|calling))(?= and|$|,)",
        "{what} {be} {plain}",
        None,
        0.8,
    ),
    Rule(
        PREFERENCE,
        r"I have {adv}(?:had |got )?an? (?P<plain>(?:[\w-]+ )?(?:love|passion|respect|soft spot|"
        r"fascination|weakness) for) {thing}",
        "Has a {plain} {thing}",
        None,
        0.8,
    ),
    Rule(
        PREFERENCE,
        r"(?P<thing>(?!I\b|we\b|it\b|that\b|this\b|which\b|what\b|there\b)\S.{1,60}?) "
        r"(?P<plain>helps? me {adv}(?:relax|unwind|de-?stress|focus|sleep|recharge|express "
        r"myself|stay (?:calm|focused|motivated)|cope|clear my (?:head|mind)))\b",
        "{thing} {plain}",
        None,
        0.75,
    ),
    Rule(
        HABIT,
        r"(?P<plain>my (?:main |biggest |favourite )?(?:hobby|hobbies|passion)) (?P<be>is|are|"
        r"include|includes) {thing}",
        "{plain} {be} {thing}",
        None,
        0.85,
        is_definite=True,
    ),
    Rule(
        PREFERENCE,
        r"(?P<thing>(?!I\b|we\b|it\b|that\b|this\b|which\b|what\b|there\b)\S.{1,60}?) (?P<be>is|"
        r"are) {adv}important to me\b",
        "{thing} {be} important to them",
        None,
        0.75,
    ),
    Rule(
        PREFERENCE,
        r"(?P<thing>(?!I\b|we\b|it\b|that\b|this\b|which\b|what\b|there\b)\S.{1,60}?) means? "
        r"(?:a lot|so much|everything|the world) to me\b",
        "{thing} is important to them",
        None,
        0.75,
    ),
)
