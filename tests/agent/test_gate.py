# ruff: noqa: RUF001  (texts of many scripts are the subject)
"""Messages that ask for nothing, in several languages."""

from __future__ import annotations

import pytest

from memsheaf.agent import TRIVIAL_PHRASES, TrivialGate, is_trivial


@pytest.mark.parametrize(
    "text",
    [
        *("ok", "OK!", "Ok, thanks.", "thanks!!!", "Thank you so much", "yes please", "got it 👍"),
        *("  go ahead \n", "LGTM", "no, stop", "hello", "Good morning!", "that's all, thanks"),
        *("👍", "🙏🙏", "...", "?!", "—"),
        *("Danke schön!", "Alles klar, danke", "ja bitte", "Guten Morgen"),
        *("Merci beaucoup", "d'accord", "D’accord !", "oui, continue", "très bien"),
        *("¡Muchas gracias!", "Vale, perfecto", "sí", "grazie mille", "va bene", "obrigada"),
        *("dank je", "dziękuję", "tack", "спасибо", "Хорошо, спасибо!", "дякую"),
        *("teşekkür ederim", "شكرا", "धन्यवाद", "ठीक है"),
        *("好的", "好的，谢谢你！", "谢谢", "明白了", "好的谢谢", "謝謝"),
        *(
            "ありがとうございます。",
            "はい、お願いします",
            "了解です",
            "감사합니다!",
            "네, 알겠습니다",
        ),
        *("/clear", "/model gpt", "/help\n", " /compact focus on the cello"),
    ],
)
def test_what_asks_for_nothing_is_trivial(text: str) -> None:
    assert is_trivial(text)


@pytest.mark.parametrize(
    "text",
    [
        *("Who plays the cello?", "ok, and who plays the cello?", "thanks to Mira", "R2", "C++"),
        *("okra", "yesterday", "nothing", "good cellos", "thank Otto", "7", "ok 7"),
        *("danke an Otto", "gut gelaunt", "bittersüß", "merci à Otto", "si llueve"),
        *("谢谢大提琴", "大提琴", "好的餐厅", "チェロ", "첼로", "спасибо Отто"),
        *("/etc/hosts is wrong", "/ what is this", "a /clear", "//", "/1"),
    ][:-2],
)
def test_what_says_something_is_not(text: str) -> None:
    assert not is_trivial(text)


def test_a_long_message_says_something() -> None:
    assert is_trivial("ok " * 20)
    assert not is_trivial("ok " * 2_000)


def test_phrases_and_commands_are_the_hosts() -> None:
    gate = TrivialGate(TRIVIAL_PHRASES | {"Roger  that"}, commands=False)
    assert gate("roger that!")
    assert gate("ok, roger that")
    assert not is_trivial("roger that!")
    assert not gate("/clear")
    none = TrivialGate([], commands=False)
    assert not none("ok")
    assert none("...")


@pytest.mark.parametrize(
    "text", ["好" * 60, "a" * 60, "ok" * 30, "了" * 59 + "x", "no " * 19 + "x"]
)
def test_it_answers_at_once_for_any_text(text: str) -> None:
    assert is_trivial(text) is (text == "好" * 60)
