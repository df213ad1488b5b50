"""Sentences that a chat puts around what was found, in the language of the question."""

from collections.abc import Set
from dataclasses import dataclass

from engram.providers.language import choose_language


@dataclass(frozen=True, slots=True)
class ChatPhrases:
    """Sentences of one language.

    Attributes:
        no_answer: nothing answers the question.
        nearest: heads the sources that are nearest to it.
        quotation: heads sentences that are quoted.
        unworded: heads what was found where the language model gave no answer.
    """

    no_answer: str
    nearest: str
    quotation: str
    unworded: str


ENGLISH = ChatPhrases(
    no_answer="I find no answer to that in this collection.",
    nearest="The nearest passages are in:",
    quotation="The collection says:",
    unworded="The language model gave no answer. What was found:",
)
PHRASES = {
    "en": ENGLISH,
    "de": ChatPhrases(
        no_answer="Dazu finde ich in dieser Sammlung keine Antwort.",
        nearest="Am nächsten kommen Stellen in:",
        quotation="Die Sammlung sagt:",
        unworded="Das Sprachmodell hat keine Antwort gegeben. Gefunden wurde:",
    ),
    "es": ChatPhrases(
        no_answer="No encuentro ninguna respuesta en esta colección.",
        nearest="Los pasajes más cercanos están en:",
        quotation="La colección dice:",
        unworded="El modelo de lenguaje no dio ninguna respuesta. Lo encontrado:",
    ),
    "fr": ChatPhrases(
        no_answer="Je ne trouve pas de réponse à cette question dans cette collection.",
        nearest="Les passages les plus proches se trouvent dans :",
        quotation="La collection dit :",
        unworded="Le modèle de langage n'a pas donné de réponse. Voici ce qui a été trouvé :",
    ),
    "zh": ChatPhrases(
        no_answer="在此资料集中没有找到答案。",
        nearest="最接近的段落来自：",
        quotation="资料集中的内容：",
        unworded="语言模型没有给出答案。找到的内容：",
    ),
}
"""Language -> its sentences."""


def find_phrases(question: str, shown: Set[str]) -> ChatPhrases:
    """Return the sentences of a question's language; English for one that has none, or where it is not known.

    A question that is too short to tell has the likeliest of these languages and those of the shown passages, or
    else the one that all of these have.

    Args:
        shown: languages of the shown passages.
    """
    language = choose_language(question, PHRASES.keys() | shown) or (next(iter(shown)) if len(shown) == 1 else "")
    return PHRASES.get(language, ENGLISH)
