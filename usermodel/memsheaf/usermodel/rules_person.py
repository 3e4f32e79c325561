"""Rules on who one is: names, age, home, what one is, languages."""

from __future__ import annotations

from .rules_rule import FACT, GOAL, Rule

__all__ = ["PERSON"]

PERSON = (
    # Names, age, birth
    Rule(
        FACT,
        r"(?:please )?(?:just )?call me (?P<name>{Name})(?:,? (?:and )?(?:not|instead of|rather "
        r"than) (?P<other>{Name}))$",
        "Is called {name}, not {other}",
        "name",
        0.95,
    ),
    Rule(
        FACT,
        r"(?:my (?:first |full |real )?name(?: is|'s)|(?:please )?(?:just )?call me|(?:you can|"
        r"everyone|everybody|people|friends|my friends|they) calls? me|I go by(?: the name)?|I "
        r"prefer to be called) (?P<name>{Name})(?! (?:back|later|when|if|at|on|to|is|a)\b)",
        "Is called {name}",
        "name",
        0.95,
    ),
    Rule(
        FACT,
        r"(?:hi|hello|hey)(?: there| all| everyone)?,? (?:I am|this is|it is) "
        r"(?P<name>{Name})(?=$|,| and\b| from\b)",
        "Is called {name}",
        "name",
        0.85,
    ),
    Rule(
        FACT,
        r"my name is (?P<name>(?!on|in|not|a|the|too|so|very|also|at|spelled|"
        r"changed)[a-z][\w'-]+)$",
        "Is called {name}",
        "name",
        0.9,
    ),
    Rule(FACT, r"my pronouns are (?P<name>\w+/\w+(?:/\w+)?)", "Uses {name} pronouns", "pronouns"),
    Rule(
        FACT,
        r"I (?:am|(?:just |recently )?turned) (?:now )?(?P<age>\d{1,3})(?: years? old\b| years? "
        r"of age| ?yo\b| ?y/o\b|(?<=turned \d\d))",
        "Is {age} years old",
        "age",
        0.95,
    ),
    Rule(
        FACT,
        r"I am an? (?P<age>\d{1,3})[- ]?years?[- ]?old\b",
        "Is {age} years old",
        "age",
        0.95,
    ),
    Rule(
        FACT,
        r"I am (?:now |only |already )?(?P<age>[1-9]\d)(?=$|,| and I\b| and (?:live|work)\b)",
        "Is {age} years old",
        "age",
    ),
    Rule(
        FACT,
        r"my birthday is (?:on )?(?:the )?(?P<day>(?:[A-Z][a-z]+ \d{1,2}(?:st|nd|rd|th)?|"
        r"\d{1,2}(?:st|nd|rd|th)?(?: of)? [A-Z][a-z]+)(?:,? \d{4})?)",
        "Has their birthday on {day}",
        "birthday",
        0.95,
    ),
    Rule(
        FACT,
        r"I was born (?:and raised )?(?P<how>in|on) (?P<place>(?:{Place}|(?:[A-Z][a-z]+ )?\d[\w "
        r",]*))",
        "Was born {how} {place}",
        "birth {how}",
        0.9,
    ),
    # Home and origin
    Rule(
        FACT,
        r"(?:I|we) (?:have )?{adv}(?:moved|relocated)(?: back)?(?: over)?(?: here)? from "
        r"(?:{Place}) to (?P<place>{Place})",
        "Lives in {place}",
        "home",
        0.95,
    ),
    Rule(
        FACT,
        r"(?:I|we) (?:have )?{adv}(?:moved|relocated)(?: back)? to (?P<place>{Place})",
        "Lives in {place}",
        "home",
        0.9,
    ),
    Rule(
        FACT,
        r"(?:I|we) (?:no longer live|do not live|stopped living) in (?P<place>{Place})(?: "
        r"anymore| any more)?",
        "No longer lives in {place}",
        None,
        0.9,
        ends=("Lives in {place}",),
    ),
    Rule(
        FACT,
        r"(?:I|we) used to live in (?P<place>{Place})",
        "No longer lives in {place}",
        None,
        0.8,
        ends=("Lives in {place}",),
        only_known=True,
    ),
    Rule(
        FACT,
        r"(?:I|we) {adv}(?:live|am living|are living|reside|am based|am located)(?: now)? in "
        r"(?P<place>{Place})",
        "Lives in {place}",
        "home",
        0.95,
    ),
    Rule(
        FACT,
        r"(?:I|we) {adv}live in (?P<name>(?!fear|pain|hope|peace|an?|the|my|our|one|two|that|"
        r"this|it|town|apartments?)[a-z]+(?: [a-z]+)?)$",
        "Lives in {name}",
        "home",
        0.85,
    ),
    Rule(
        FACT,
        r"(?:I|we) {adv}(?:live|am living|reside) (?P<rest>(?!in (?:fear|pain|hope|peace|the "
        r"(?:moment|past|present|now))\b)(?:in|on|near|by|with|alone) ?.*)",
        "Lives {rest}",
        None,
        0.8,
        is_definite=True,
    ),
    Rule(
        GOAL,
        r"(?:I|we) (?:am|are) {adv}moving (?:back |out )?to (?P<place>{Place})",
        "Plans to move to {place}",
        None,
        0.8,
    ),
    Rule(
        FACT,
        r"I am (?:originally )?from (?P<place>{Place})",
        "Is from {place}",
        "origin",
        0.9,
    ),
    Rule(
        FACT,
        r"(?:I|we) (?P<how>grew up|was raised) in (?P<place>{Place}|a (?:small|big|tiny|rural) "
        r"\w+)",
        "Grew up in {place}",
        "childhood",
        0.9,
    ),
    # What one is
    Rule(
        FACT,
        r"I {am} (?P<thing>married|divorced|widowed|single|engaged)(?: to (?P<name>{Name}))?{end}",
        "Is {thing}",
        "relationship",
        0.9,
    ),
    Rule(
        FACT,
        r"(?:I|we) (?:have )?{adv}(?:got|gotten) (?P<thing>married|divorced|engaged)\b(?! in the)",
        "Is {thing}",
        "relationship",
        0.9,
    ),
    Rule(
        FACT,
        r"I {am} on an? (?P<plain>[\w-]+(?: [\w-]+)? diet)\b",
        "Is on a {plain}",
        "diet",
        0.85,
    ),
    Rule(
        FACT,
        r"I {am} (?P<how>an? (?:complete |total |absolute )?(?:beginner (?:in|at|with)|novice "
        r"(?:in|at)|expert (?:in|on))|new to) {thing}",
        "Is {how} {thing}",
        "level:{thing}",
        0.8,
    ),
    Rule(
        FACT,
        r"I (?:have )?{adv}(?:became|become|went|gone|turned|am going) (?P<plain>{identity}){end}",
        "Is {plain}",
        "is:{plain}",
        0.85,
    ),
    Rule(
        FACT,
        r"I used to be (?P<plain>(?:an? )?(?:{identity}|{role}|{occupation})){end}",
        "Is not {plain}",
        None,
        0.8,
        ends=("Is {plain}",),
        only_known=True,
    ),
    Rule(
        FACT,
        r"I {am} (?P<plain>{identity}){end}",
        "Is {plain}",
        "is:{plain}",
        0.9,
    ),
    Rule(
        FACT,
        r"I am (?:not|no longer) {adv}(?P<plain>(?:an? )?(?:{identity}|{role}|{occupation}))(?: "
        r"anymore| any more)?{end}",
        "Is not {plain}",
        "is:{plain}",
        0.85,
    ),
    Rule(
        FACT,
        r"I (?:{am}|{adv}became|have become) (?:more of )?an? (?:bit of an? "
        r")?(?P<role>(?:(?!not\b|the\b)[\w-]+ ){0,2}?{role})(?P<rest> of (?:{number}|\w+ing)\b.*|"
        r"){end}",
        "Is a {role} {rest}",
        None,
        0.9,
    ),
    Rule(
        FACT,
        r"I {am} (?P<plain>lactose|gluten|fructose|histamine)[- ]intolerant",
        "Is {plain} intolerant",
        "is:{plain} intolerant",
        0.95,
    ),
    # Languages
    Rule(
        FACT,
        r"my (?:native|first|mother|second) (?:language|tongue) is (?P<plain>{language})",
        "Is a native speaker of {plain}",
        None,
        0.9,
    ),
    Rule(
        FACT,
        r"I {adv}(?:can )?speak (?:(?:fluent|some|a little|a bit of|basic|good) "
        r")?(?P<thing>{language}\b.*)",
        "Speaks {thing}",
        None,
        0.9,
        ends=("Wants to learn {thing}", "Is learning {thing}"),
    ),
    Rule(
        FACT,
        r"I am {adv}(?:fluent in|a native speaker of|a native) (?P<thing>{language}\b.*)",
        "Speaks {thing}",
        None,
        0.9,
    ),
)
