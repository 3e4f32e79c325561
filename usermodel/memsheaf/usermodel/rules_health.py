"""Rules on health and diet: allergies, conditions, what one avoids or has given up."""

from __future__ import annotations

from .rules_rule import FACT, PREFERENCE, Rule

__all__ = ["HEALTH"]

HEALTH = (
    Rule(
        FACT,
        r"I am not (?:actually )?allergic to {thing}",
        "Is not allergic to {thing}",
        "allergy:{thing}",
        0.9,
    ),
    Rule(
        FACT,
        r"I am {adv}(?:deathly |severely |mildly )?allergic to {thing}",
        "Is allergic to {thing}",
        "allergy:{thing}",
        0.95,
    ),
    Rule(
        FACT,
        r"I (?:have|have got|suffer from) (?:an? )?(?:severe |mild |bad )?(?P<thing>[a-z]+(?: "
        r"[a-z]+)?) (?:allergy|allergies)",
        "Has {thing} allergies",
        "allergy:{thing}",
        0.9,
    ),
    Rule(
        FACT,
        r"I (?:have|have got|suffer from|was diagnosed with|live with) (?:severe |mild |chronic "
        r")?(?P<plain>{condition}){end}",
        "Has {plain}",
        "condition:{plain}",
        0.9,
    ),
    Rule(
        PREFERENCE,
        r"I {adv}(?:stopped|quit|gave up|have given up|have stopped|have quit) (?P<did>eating|"
        r"drinking|smoking|vaping)(?P<rest>(?: .*)?)",
        "No longer {did} {rest}",
        "{did}:{rest}",
        0.9,
        ends=("{did} {rest}",),
    ),
    Rule(
        PREFERENCE,
        r"I (?:have )?{adv}(?:quit|gave up|given up|cut out) (?P<plain>coffee|alcohol|sugar|meat|"
        r"dairy|gluten|caffeine|cigarettes|soda|nicotine|bread|facebook|instagram|twitter|tiktok|"
        r"social media)\b",
        "Has given up {plain}",
        "like:{plain}",
        0.9,
    ),
    Rule(
        PREFERENCE,
        r"I {adv}(?P<do>avoid) {thing}",
        "{do} {thing}",
        "like:{thing}",
        0.8,
    ),
    Rule(
        PREFERENCE,
        r"I only (?P<do>eat|drink|wear|buy|use) {thing}",
        "Only {do} {thing}",
        None,
        0.8,
    ),
    Rule(
        FACT,
        r"I {adv}(?:cannot|can not) (?P<act>eat|drink|have|swim|drive|ride|read|cook|dance|sing|"
        r"see)(?P<rest>(?: (?!wait|believe|help|stand|that|it|this).*)?)",
        "Cannot {act} {rest}",
        "{act}:{rest}",
        0.8,
    ),
    Rule(
        PREFERENCE,
        r"I {adv}(?:do not|never) {adv}(?P<act>eat|drink|smoke|vape|drive|cook|swim|gamble|"
        r"speak)(?P<rest>(?: .*)?)(?<!yet)$",
        "Does not {act} {rest}",
        "{act}:{rest}",
        0.85,
    ),
)
