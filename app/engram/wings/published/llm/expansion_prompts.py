"""The wording that has the language model widen a question: a task and the form of the reply for each method."""

from collections.abc import Mapping

from engram.providers.llm.prompts import Message, NumberedEvidence, Wording, conversation, cut_quote, guard_wording
from engram.wings.published.core.expansion import WordedMethod

_ONE_QUESTION = """\
Reply with one JSON object: {"question": "the new question"}"""

WORDINGS: Mapping[WordedMethod, Wording] = {
    "hyde": Wording(
        """\
You write the passage that somebody with this question hopes to find: one paragraph of three to six sentences in
the manner of a reference work, which states the answer and the facts it rests on as plain facts. Use the names,
dates and terms that such a text would use. Where you do not know a detail, take the likeliest: the paragraph
serves to find real ones like it and is never read as true. Do not speak of the question or of yourself.""",
        'Reply with one JSON object: {"passage": "the paragraph"}',
    ),
    "decomposition": Wording(
        """\
You take a question apart into the smaller ones that its answer depends on, in the order in which they would be
looked up. Each asks for one fact and can be understood by somebody who sees neither the question nor the other
parts: it names whom and what it is about, and describes in the question's own words what only an earlier part
would tell. Give two at least and five at most. A question for a single fact gives the fact itself and whatever
would tell its subject from others.""",
        'Reply with one JSON object: {"parts": ["the first question", "the second question"]}',
    ),
    "facets": Wording(
        """\
You list the sides from which texts may treat what a question is about, so that a search misses none of them: two
to six sides that differ in substance. For each give four to ten words or short phrases that texts on that side
contain: names, terms of the field, other words for the same thing.""",
        'Reply with one JSON object: {"facets": [{"name": "the side", "terms": ["a term", "another"]}]}',
    ),
    "contrastive": Wording(
        """\
You draw the line between texts that answer a question and texts that merely resemble them. Give the words and
short phrases that the first kind contains, five to fifteen of them, and those that betray the second kind: another
sense of a word, another bearer of a name, another time or place, a neighbouring subject.""",
        'Reply with one JSON object: {"wanted": ["a term", "another"], "unwanted": ["a term", "another"]}',
    ),
    "specification": Wording(
        """\
You make a question say what it takes for granted. Spell out the field it belongs to, the kind of thing it asks
for and, where the wording implies them, the period, the place and the conditions. Of several readings take the one
that most people would mean. Every name, number and condition of the question stays; the answer does not belong in
it.""",
        _ONE_QUESTION,
    ),
    "rewriting": Wording(
        """\
You put a question into the words that texts on its subject use: the terms of the field instead of everyday ones,
abbreviations written out, full names where they are certain, no filler. What it asks for and under which conditions
stays exactly as it is, and nothing is added, least of all the answer.""",
        _ONE_QUESTION,
    ),
    "synonyms": Wording(
        """\
You act as a thesaurus for the words of a question. Take its nouns, verbs and adjectives that a text could put
otherwise, in the sense that they have here, and give for each the synonyms, other spellings, abbreviations or full
forms, and the nearest broader or narrower terms. Names keep their other forms only. No word of the question
itself, nothing that merely goes with the subject, five to twenty in all.""",
        'Reply with one JSON object: {"terms": ["a term", "another"]}',
    ),
    "step-back": Wording(
        """\
You take a step back from a question: you ask for the background on which its answer would be found. Name the
person, thing, event or principle that it is about and ask for what is known of it in general, without the detail
that the question is after. Somebody who had read the answer to your question could answer the original.""",
        _ONE_QUESTION,
    ),
}

REFINEMENT = Wording(
    """\
You improve a search step by step. The draft is what was searched for last, and every line of the evidence is a
passage that it found. See what these passages call the things that the question is about, which links of the way to
the answer they supply, and which are still missing. Then write the question to search for next: it asks what the
original question asks, in the names and terms that the passages use, and names what is missing. Passages that are
beside the point are left aside. One to three sentences, and no answer.""",
    _ONE_QUESTION,
)


def expansion(method: WordedMethod, question: str) -> list[Message]:
    """Ask for texts that widen the question."""
    return conversation(guard_wording(WORDINGS[method]), {"question": cut_quote(question)})


def refinement(question: str, draft: str, evidence: NumberedEvidence) -> list[Message]:
    """Ask for a better question than ``draft``, which found the evidence, to the same end as ``question``."""
    parts = {"evidence": evidence.block, "question": cut_quote(question), "draft": cut_quote(draft)}
    return conversation(guard_wording(REFINEMENT), parts)
