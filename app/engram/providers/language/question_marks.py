"""Marks of a question: what it names that makes it another question than a near one."""

import re

from engram.core.ranking.question_contrasts import QuestionMarks
from engram.providers.language.language_protocol import QuestionAnalysis

_WORD = re.compile(r"\w+(?:['’]\w+)*")
# A token with a digit, with the letters, marks and the unit or currency that belong to it.
_FIGURE = re.compile(
    r"(?:[$€£¥₹]\s?)?[^\W\d_]*\d(?:[\w.,:/-]*\w)?(?:\s?(?:%|°|(?:[kmcµn]?g|[kmcn]?m|km/h|ml|l)\b))?"
)
_NEGATION = frozenset(
    """no not never without cannot nor none nothing nobody neither nowhere nicht kein keine keinen keinem keiner
    keines nie niemals ohne nichts ne pas jamais sans aucun aucune rien sin ningún ninguna nunca jamás nada non mai
    senza nessun nessuno nessuna niente não nem sem nenhum nenhuma niet geen nooit zonder niets не нет без никогда
    ничего ни nie bez nigdy inte ingen aldrig ikke aldri ei değil yok
    لا لم لن ليس ليست بدون غير नहीं न बिना मत""".split()
)
_PRESENT = frozenset(
    """now today currently current latest newest nowadays presently jetzt heute aktuell aktuelle aktuellen aktueller
    aktuelles derzeit momentan gegenwärtig neueste neuesten neuester maintenant aujourd'hui actuel actuelle actuels
    actuellement ahora hoy actual actuales actualmente oggi adesso attuale attuali attualmente agora hoje atual
    atualmente nu vandaag huidige momenteel сейчас сегодня текущий текущая текущие нынешний теперь teraz dziś
    obecnie aktualny nuvarande idag şimdi bugün güncel الآن اليوم حاليا الحالي अब आज वर्तमान अभी""".split()
)
# Scripts that write no spaces.
_UNSPACED_NEGATION = re.compile("[不没沒無无未]|ない|ません|ไม่")
_UNSPACED_PRESENT = re.compile("现在|現在|目前|当前|今天|今日|最新|如今|今は|いま|ตอนนี้|ปัจจุบัน|ล่าสุด")


def read_marks(text: str, analysis: QuestionAnalysis) -> QuestionMarks:
    """Read the marks of a question.

    Negation and the present are recognised by the words listed above. In other languages neither is found.

    Args:
        analysis: of the same text.
    """
    words = _split_words(text)
    names = {word for name in analysis.entities for word in _split_words(name)}.intersection(words)
    return QuestionMarks(
        words=frozenset(words),
        figures=frozenset("".join(figure.lower().split()) for figure in _FIGURE.findall(text)),
        names=frozenset(word for word in names if word.isalpha()),
        negated=any(word in _NEGATION or word.endswith("n't") for word in words)
        or _UNSPACED_NEGATION.search(text) is not None,
        present=any(word in _PRESENT for word in words) or _UNSPACED_PRESENT.search(text) is not None,
        dated=analysis.time_expression is not None,
    )


def _split_words(text: str) -> list[str]:
    return [word.lower().replace("’", "'").removesuffix("'s") for word in _WORD.findall(text)]
