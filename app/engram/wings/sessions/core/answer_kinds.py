"""Tell whether a text has what a question word asks for: a time, a number or a person."""

import re

_TIME_QUESTION = re.compile(r"(?:\w+ )?(?:when|(?:which|what) (?:year|month|day|date))\b")
_NUMBER_QUESTION = re.compile(
    r"(?:\w+ )?how (?:many|much|long|tall|large|big|far|old|high|often|fast|heavy|deep|wide)\b"
)
_PERSON_QUESTION = re.compile(r"(?:\w+ )?(?:who|whom|whose)\b")
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_DAYS = "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"
_TIME = re.compile(
    rf"\b(?:1\d{{3}}|20\d{{2}})\b|\b(?:{_MONTHS}|{_DAYS})\b|\b\d+ (?:year|month|week|day|hour|minute|second)s?\b"
)
_NUMBER = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|hundred|thousand|million|half|"
    r"twice|once|none)\b",
    re.IGNORECASE,
)
_PERSON = re.compile(r"\b[A-Z][\w'’\-]+(?: (?:[a-z]{1,3}|[A-Z]\.)){0,3}(?: [A-Z][\w'’\-]+)+")


def has_answer_kind(question: str, text: str) -> bool:
    """Whether a text has a time, number or person, as the question word asks; True for other question words.

    A person is two or more words with capitals that are not all in the question.
    """
    lowered = question.lower()
    if _TIME_QUESTION.match(lowered):
        return _TIME.search(text) is not None
    if _NUMBER_QUESTION.match(lowered):
        return _NUMBER.search(text) is not None
    if _PERSON_QUESTION.match(lowered):
        question_words = set(re.findall(r"\w+", question))
        return any(not set(re.findall(r"\w+", name[0])) <= question_words for name in _PERSON.finditer(text))
    return True
