"""The wording that has the language model plan and curate the rounds of a session.

All of it is ours. ``VERSION`` names it: whoever changes what a prompt asks for gives it another, since what
sessions of one version came to says nothing of the next. Passages and notes are quoted as in ``prompts``.
"""

from collections.abc import Sequence

from engram.providers.llm.prompts import (
    Message,
    NumberedEvidence,
    Wording,
    conversation,
    cut_quote,
    guard_wording,
    quote,
)

VERSION = "2026.1"
"""Of the wording here; sessions keep which one they went by."""

_NUMBERED = "In the evidence every line is one sentence, and the number that opens the line is its name."

SPLIT = Wording(
    """\
You take a question apart into the single facts that have to be looked up, each as a relation of two things:
subject, relation, object. What is not known yet is written ?1, ?2 and so on, the same mark for the same thing
wherever it comes up; what the question itself asks for is written ?. Everything else is in the question's own
words. Give the facts in the order in which they can be looked up, eight at most, and for each a short question
for it, which may use the marks of facts before it.""",
    'Reply with one JSON object: {"triples": [{"subject": "the film", "relation": "director", "object": "?1", '
    '"question": "Who directed the film?"}]}',
)

GAPS = Wording(
    f"""\
You keep the books of a search. The facts are what has to be found, with marks such as ?1 for what was unknown
at the outset; the evidence is what was found. {_NUMBERED} Say which marks the evidence settles, each with its
value as the evidence writes it and the numbers of the sentences that settle it. A value that no sentence states
stays open, however well you know it. Then say whether the evidence as a whole suffices to answer the question,
and if not, write the one search query that goes after what is missing most: a few words or a question, with the
values that are settled in place of their marks, and with no name that neither the question nor the evidence
has.""",
    'Reply with one JSON object: {"reasoning": "one to three sentences", "settled": [{"mark": "?1", '
    '"value": "the name", "cited": [2]}], "sufficient": false, "query": "what to search for next"}. '
    '"query" is "" where the evidence suffices.',
)

SIFT_WORDING = Wording(
    f"""\
You sift what a search brought, for somebody who will work from what you keep and sees nothing else. {_NUMBERED}
Go through the sentences one by one. Keep a sentence if it states what was searched for or a part of it, if it
says who or what another kept sentence is about, if it sets a condition such as a time or a place that the
question depends on, or if it goes against what the notes or another kept sentence say. Leave out what only
shares a name or a subject, and what says again what the notes have. Where sentences contradict each other, or
contradict a note, keep both sides and name the contradiction; if one side is the better founded by what the
sentences say (it is more exact, later, or about the very thing), say which sentences bear it.""",
    'Reply with one JSON object: {"reasoning": "one to three sentences", "kept": [1, 4], "contradictions": '
    '[{"cited": [1, 4], "about": "what they disagree on", "borne_by": [4]}]}. "borne_by" is [] where neither '
    "side is the better founded.",
)

NOTE = Wording(
    f"""\
You keep the notes of a search that goes through several steps: what is known so far that bears on the main
question, one fact to a line, short and whole in itself. You see the notes as they are, the sentences found in
this step and the step's own question and answer. {_NUMBERED} Write the notes anew: keep what still bears on the
main question, add what this step established, put facts together that belong together, and drop nothing because
it disagrees with something else: say that it does. Every note rests on sentences of the evidence, whose numbers
it cites; what no sentence states is no note.""",
    'Reply with one JSON object: {"notes": [{"text": "one fact", "cited": [1, 2], "contradicts": false}]}',
)

STEP = Wording(
    """\
You lead a search one step at a time. The notes are all that is known so far. If they settle the main question,
every link of the chain included, say that it can be answered. If not, name the one thing that is missing most,
as a question that can be understood by itself: it asks for one fact, names whom and what it is about in the
words of the main question or of the notes, is not answered by the notes, and is none of those that were asked
already.""",
    'Reply with one JSON object: {"reasoning": "one or two sentences", "answerable": false, '
    '"sub_question": "the question"}. "sub_question" is "" where the main question can be answered.',
)

QUERIES = Wording(
    """\
You turn a question into search queries: one to three, each for one thing, each to be understood by itself, none
repeating another. Use the words and names of the question and the notes alone: a name that stands in neither
has no place in a query, however sure you are of it.""",
    'Reply with one JSON object: {"queries": ["the first query", "another"]}',
)


def split(question: str) -> list[Message]:
    """Ask for the facts that a question depends on."""
    return conversation(guard_wording(SPLIT), {"question": cut_quote(question)})


def gaps(question: str, facts: Sequence[str], evidence: NumberedEvidence) -> list[Message]:
    """Ask what of the facts the evidence settles, whether it suffices, and what to search for next."""
    parts = {"evidence": evidence.block, "facts": lines(facts), "question": cut_quote(question)}
    return conversation(guard_wording(GAPS), parts)


def keep(question: str, sought: str, notes: Sequence[str], evidence: NumberedEvidence) -> list[Message]:
    """Ask which sentences to keep of those that ``sought`` found (Eq. 1)."""
    parts = {
        "evidence": evidence.block,
        "notes": lines(notes),
        "searched_for": cut_quote(sought),
        "question": cut_quote(question),
    }
    return conversation(guard_wording(SIFT_WORDING), parts)


def note(
    question: str, notes: Sequence[str], evidence: NumberedEvidence, sub_question: str, answer: str
) -> list[Message]:
    """Ask for the notes as they are after a step (Eq. 2)."""
    parts = {
        "evidence": evidence.block,
        "notes": lines(notes),
        "step_question": cut_quote(sub_question),
        "step_answer": cut_quote(answer),
        "question": cut_quote(question),
    }
    return conversation(guard_wording(NOTE), parts)


def step(question: str, notes: Sequence[str], asked_questions: Sequence[str]) -> list[Message]:
    """Ask whether the question can be answered from the notes, and for the next sub-question if not."""
    parts = {"notes": lines(notes), "asked_already": lines(asked_questions), "question": cut_quote(question)}
    return conversation(guard_wording(STEP), parts)


def queries(sub_question: str, notes: Sequence[str]) -> list[Message]:
    """Ask for search queries."""
    return conversation(guard_wording(QUERIES), {"notes": lines(notes), "question": cut_quote(sub_question)})


def lines(texts: Sequence[str]) -> str:
    """Texts as lines of their own; a dash where there are none."""
    return join_latest_lines([f"- {quote(text)}" for text in texts]) or "-"


def join_latest_lines(rows: Sequence[str], most: int = 8_000) -> str:
    """The rows as one text, those left out from the beginning that have no room: the last are the latest."""
    kept: list[str] = []
    for row in reversed(rows):
        most -= len(row) + 1
        if most < 0:
            break
        kept.append(row)
    return "\n".join(reversed(kept))
