"""The wording of the tree planner: a task and the form of its reply.

The paper gives prompts of its own (State-Aware RAG, Appendix C); these serve the same ends in other words.
"""

from engram.providers.llm.prompts import Wording
from engram.wings.sessions.core.rewards import HIGHEST_RATING

VERSION = "2026.1"
"""Of the wording here, which changes with it."""

_CITED = '"cited" lists sentence numbers.'
_RATING = f"{HIGHEST_RATING:g}"

CONSOLIDATE = Wording(
    """\
You take one step of reasoning in a search for the answer to a question. The evidence is what the search has found
so far, and the notes are what was concluded from it. Draw the one conclusion that brings the answer nearest:
put facts together, carry a name from one sentence into another, compare dates or numbers. Use nothing that the
evidence does not say, and ask for nothing new. If nothing follows that the notes do not say already, give an
empty conclusion.""",
    f"""\
Reply with one JSON object:
{{"conclusion": "one or two sentences", "cited": [1, 4]}}
{_CITED}""",
)

REFINE = Wording(
    """\
You check an answer against the evidence and from nothing else. It is "correct" if the evidence states it and it is
complete, "partial" if it is right as far as it goes, "incorrect" if the evidence says otherwise, and "unsupported"
if the evidence does not tell. Then give the answer as it should be: the same one if it is correct, the better one
if the evidence has it, and an empty one if the evidence has none.""",
    f"""\
Reply with one JSON object:
{{"reasoning": "one or two sentences", "verdict": "partial", "answer": "Lisbon", "cited": [1, 4]}}
{_CITED}""",
)

REDIRECT = Wording(
    """\
You reword a question whose search came to nothing. The new one asks for the same fact about the same things, but
plainly: one thing at a time, no pronoun, no roundabout description where a name is known from the notes, and in
the words that texts on the subject would use. Add nothing, least of all the answer.""",
    'Reply with one JSON object: {"reworded": "the new question"}',
)

RATE = Wording(
    f"""\
You rate an answer to a question from 0 to {_RATING}. You have no key: go by the steps that led to it and by the
evidence. {_RATING} is an answer that is complete, leaves the reader nothing to ask, and of which every link is
stated by the evidence. Take off for every link that is guessed, for steps that contradict each other, and for an
answer that is to another question. 0 is no answer, or one that the evidence refutes.""",
    'Reply with one JSON object: {"reasoning": "one or two sentences", "rating": 7}',
)

SYNTHESISE = Wording(
    """\
You settle what the answer to a question is. Several searches each gave a candidate, with what led to it. Where they
agree, see whether the evidence bears them out; where they differ, go by the candidate whose links the evidence
states, not by how many say it. Give the shortest complete answer, without a lead-in. It need not be any candidate's
in its exact words, but it says nothing that neither the candidates nor the evidence say.""",
    f"""\
Reply with one JSON object:
{{"reasoning": "one to three sentences", "answer": "Lisbon", "cited": [1, 4], "sufficient": true}}
"sufficient" is false if the evidence settles none of them. {_CITED}""",
)
