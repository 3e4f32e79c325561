"""Rules on family and pets."""

from __future__ import annotations

from .rules_rule import FACT, Rule

__all__ = ["FAMILY"]

FAMILY = (
    Rule(
        FACT,
        r"my (?P<plain>(?:{partner}|partner|{relative}|mom|mum|dad|mother|father|{pet})(?: dog| "
        r"cat)?)(?:'s name is| is (?:called|named)) (?P<name>{Name})",
        "Has a {plain} named {name}",
        None,
        0.95,
    ),
    Rule(
        FACT,
        r"(?:my|our) (?P<plain>{pet})(?:,? (?P<name>{Name}),?)? (?:has )?(?:just |recently |sadly "
        r")*(?:died|passed away|was put down)\b",
        "No longer has a {plain} named {name}",
        None,
        0.85,
        ends=("Has a {plain} named {name}",),
    ),
    Rule(
        FACT,
        r"I (?:have )?{adv}(?:broke up with|broken up with|split up with|separated from|divorced) "
        r"my (?P<plain>{partner}){end}",
        "No longer has a {plain}",
        None,
        0.85,
        ends=("Has a {plain}",),
    ),
    Rule(
        FACT,
        r"(?:I|we) (?:no longer have|do not have|never had|have no) (?:any )?(?:an? "
        r")?(?P<plain>{pet}|{pets}|kids|children|siblings|brothers|sisters)(?: anymore| any "
        r"more)?{end}",
        "Has no {plain}",
        None,
        0.85,
        ends=("Has {plain}", "Has a {plain}"),
    ),
    Rule(
        FACT,
        r"(?:I|we) (?:now )?{adv}have(?: got)?(?: now)? (?P<plain>(?:two|three|four|five|six|seven|"
        r"eight|nine|ten|\d{1,2})) (?P<what>{pets}|{relatives})(?=$|\s*[,(]| (?:and|but|now|so)\b)"
        r"(?!,? (?:named |called |and )?(?-i:[A-Z]))",
        "Has {plain} {what}",
        "number of {what}",
        0.9,
        ends=("Has no {what}", "Has {what}"),
    ),
    Rule(
        FACT,
        r"(?:I|we) (?:just |recently )?(?:{adv}have|have got|adopted|got)(?: also)? "
        r"(?P<plain>{number} (?:(?!lot\b|bunch\b)[\w'-]+ ){0,3}?(?P<what>{pet}|{pets}|{relative}|"
        r"{relatives}))(?:,? (?:named|called)? ?(?P<name>{Name}(?:(?:, | and |, and "
        r"){Name})*))?(?! (?:at|in|over|on) (?:my|school|work|class|town)\b)",
        "Has {plain} named {name}",
        None,
        0.9,
        ends=("Has no {what}", "Has {what}"),
    ),
)
