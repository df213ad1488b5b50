"""In which language a chat without a model speaks."""

import pytest

from engram.wings.frontends.services.chat_phrases import ENGLISH, PHRASES, find_phrases

QUESTIONS = {
    "de": "Wann endet die Musik?|Wer zahlt?|Was kostet das?|Kontakt Hausmeister|Wie viele Tage Urlaub?",
    "en": "When does the music end?|Who pays?|Can I smoke?|terminal screw torque|Who drives?|opening hours",
    "es": "¿Cuándo termina la música?|¿Hay aparcamiento?|¿Puedo fumar?|horario de apertura|Donde se recicla?",
    "fr": "Quand finit la musique ?|Qui paie ?|Puis-je fumer ?|Qui conduit ?|Est-ce gratuit ?|heures d'ouverture",
    "zh": "音乐什么时候结束？|多少钱？|营业时间",
}


@pytest.mark.parametrize("language", QUESTIONS)
@pytest.mark.parametrize("shown", [set(), {"en"}, {"de", "fr"}], ids=str)
def test_a_short_question_is_answered_in_its_own_language(language: str, shown: set[str]) -> None:
    for question in QUESTIONS[language].split("|"):
        assert find_phrases(question, shown) == PHRASES[language], question


@pytest.mark.parametrize(
    ("question", "shown", "language"),
    [
        ("KV80", {"de"}, "de"),
        ("2207?", {"fr"}, "fr"),
        ("KV80", {"de", "fr"}, "en"),
        ("2207?", set(), "en"),
        ("Wie betaalt?", {"nl"}, "en"),
        ("Hvem betaler?", {"da"}, "en"),
        ("Quando finisce la musica nel cortile?", {"de"}, "en"),
    ],
)
def test_what_has_no_language_or_another_one(question: str, shown: set[str], language: str) -> None:
    assert find_phrases(question, shown) == PHRASES.get(language, ENGLISH)
