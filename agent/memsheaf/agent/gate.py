"""The gate: messages such as "ok", "thanks" and "/clear" ask for no memory."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

__all__ = ["TRIVIAL_PHRASES", "TrivialGate", "is_trivial"]

_PHRASES = """
    ok, okay, k, kk, yes, yep, yeah, yup, no, nope, nah, sure, sure thing, of course, fine, right,
    alright, all right, great, good, nice, cool, perfect, awesome, excellent, wonderful, got it,
    i see, understood, makes sense, sounds good, looks good, lgtm, thanks, thank you, thx, ty,
    cheers, many thanks, much appreciated, please, pls, go, go on, go ahead, continue, carry on,
    proceed, next, more, again, done, stop, wait, hi, hello, hey, hey there, good morning,
    good evening, good night, bye, goodbye, see you, lol, haha, hm, hmm, oh, ah, wow, so much,
    very much,
    a lot, do it, that is all, that's all, no problem, np, you are welcome, you're welcome, welcome,
    ja, nein, doch, gut, klar, genau, passt, alles klar, verstanden, danke, danke schön,
    vielen dank, bitte, weiter, mach weiter, super, toll, prima, hallo, guten morgen, guten abend,
    gute nacht, servus, tschüss, bis dann, stopp, warte, fertig, in ordnung, einverstanden,
    dankeschön,
    oui, non, d'accord, merci, merci beaucoup, s'il te plaît, s'il vous plaît, bien, très bien,
    parfait, bonjour, bonsoir, salut, au revoir, continuez, compris, entendu, c'est bon,
    sí, si, vale, gracias, muchas gracias, por favor, muy bien, perfecto, hola, buenos días,
    adiós, sigue, continúa, entendido, de acuerdo, claro,
    sì, va bene, grazie, grazie mille, per favore, prego, perfetto, ciao, buongiorno, continua,
    capito, certo,
    sim, não, obrigado, obrigada, muito obrigado, muito obrigada, perfeito, olá, bom dia, tchau,
    entendi, tá bom,
    nee, dank je, dank u, bedankt, goed, hoi, doei, ga door, begrepen, graag gedaan,
    tak, nie, dobrze, dzięki, dziękuję, proszę, cześć, dalej, nej, tack, mange tak, hej,
    да, нет, хорошо, ладно, ок, спасибо, большое спасибо, пожалуйста, привет, пока, дальше,
    продолжай, понятно, понял, поняла, отлично, так, ні, дякую, добре,
    evet, hayır, tamam, teşekkürler, teşekkür ederim, sağ ol, merhaba, lütfen, devam et, harika,
    نعم, لا, شكرا, شكرا جزيلا, حسنا, تمام, مرحبا, استمر,
    हाँ, नहीं, धन्यवाद, शुक्रिया, ठीक है, नमस्ते,
    好, 好的, 是, 是的, 对, 对的, 不, 不是, 行, 可以, 没问题, 谢谢, 多谢, 谢谢你, 非常感谢, 你好,
    您好, 再见, 继续, 请继续, 明白, 明白了, 知道了, 了解, 好吧, 嗯, 嗯嗯, 哈哈, 謝謝, 對, 繼續,
    了, 啊, 吧,
    はい, いいえ, うん, ええ, わかった, わかりました, 了解です, 了解しました, ありがとう,
    ありがとうございます, ありがとうございました, どうも, お願いします, こんにちは, おはよう,
    続けて, 続けてください, オーケー, いいね, いいです, なるほど, さようなら,
    네, 예, 응, 아니요, 아니, 좋아, 좋아요, 알겠습니다, 알겠어요, 알았어, 감사합니다, 고마워,
    고맙습니다, 고마워요, 안녕, 안녕하세요, 계속, 계속해, 계속해 주세요, 그래, 네네
"""  # noqa: RUF001  (letters of many scripts)
TRIVIAL_PHRASES = frozenset(phrase.strip() for phrase in _PHRASES.split(","))
"""What says nothing to search for, in lower case: English, German, French, Spanish, Italian,
Portuguese, Dutch, Polish, Scandinavian, Russian, Ukrainian, Turkish, Arabic, Hindi, Chinese,
Japanese, Korean."""

_LONGEST = 60  # characters; a longer message says something
_COMMAND = re.compile(r"/[a-z][\w-]*(?:\s|$)", re.IGNORECASE)
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff"
_GAP = re.compile(r"[\W_]+")


class TrivialGate:
    """Says whether a message holds nothing worth a look into memory.

    A message is trivial when it is made of such phrases alone (in any number and order, in any
    case), when it holds no letter or digit, or when it is a command such as ``/clear``.

    Args:
        phrases: The phrases, in lower case; `TRIVIAL_PHRASES` where not given.
        commands: Whether ``/word`` at the beginning makes a message a command.

    >>> gate = TrivialGate(TRIVIAL_PHRASES | {"roger that"})
    >>> gate("OK, thanks!"), gate("Roger that."), gate("谢谢你"), gate("/clear all")
    (True, True, True, True)
    >>> gate("thanks, and who plays the cello?"), gate("/etc/hosts is wrong")
    (False, False)
    """

    def __init__(self, phrases: Iterable[str] = TRIVIAL_PHRASES, *, commands: bool = True) -> None:
        self._commands = commands
        plain = sorted({_plain(phrase) for phrase in phrases} - {""}, key=len, reverse=True)
        unspaced = re.compile(f"[{_UNSPACED}]")
        choices = [
            f"{re.escape(p)} ?" if unspaced.search(p) else rf"{re.escape(p)}(?: |$)" for p in plain
        ]
        self._phrases = re.compile(f"(?>(?:{'|'.join(choices)})*)" if choices else "")

    def __call__(self, text: str) -> bool:
        """Whether the message is trivial."""
        stripped = text.strip()
        if self._commands and _COMMAND.match(stripped):
            return True
        if len(stripped) > _LONGEST:
            return False
        return self._phrases.fullmatch(_plain(stripped)) is not None


def _plain(text: str) -> str:
    return _GAP.sub(" ", unicodedata.normalize("NFKC", text).casefold()).strip()


is_trivial = TrivialGate()
"""The gate with its defaults."""
