"""Relations that words of a question ask for: "where was she born" asks for a place of birth."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from engram.providers.language.lexical_terms import terms

# Words of questions -> words that predicates and kinds of objects have; what several words say stands once.
_RELATION_WORDS = """
director directors directed direct filmmaker: director directed
composer composed compose music: composer composed music
performer performed performs singer sang sings sung artist band: performer performed sung recorded
writer wrote written author authored screenwriter: author writer written screenwriter wrote
producer produced produces: producer produced
founder founded founders established: founder founded established
publisher published publishes: publisher published publication
creator created invented inventor: creator created invented
starring stars starred star cast actor actress: starring stars cast
born birthplace birthday birth: birth born
older younger oldest youngest elder age: birth born
died die dead death dies killed: death died
lived longer: death birth
cause: cause
buried burial: burial buried
when year date day month: date released premiered
earlier later recently released release came out premiered premiere: date release released premiered publication
where place location located: place location located
nationality citizenship citizen: citizenship country nationality
country nation countries: country citizenship origin
wife husband spouse married marry wed widow: spouse
son daughter child children kid: child
father dad: father parent child
mother mom: mother parent child
parent parents: father mother parent child
grandfather grandmother grandson granddaughter grandchild grandparent: father mother parent child
paternal: father
maternal: mother
uncle aunt nephew niece cousin: sibling father mother parent child
brother sister sibling brothers sisters siblings: sibling
stepmother stepfather stepson stepdaughter: spouse father mother child
father-in-law mother-in-law brother-in-law sister-in-law son-in-law daughter-in-law: spouse father mother sibling
studied study graduated graduate attended attend educated school university college: educated
worked work employer employed works job: employer occupation works worked
profession occupation: occupation
award awards won win prize: award won received
owner owns owned: owner owned
capital: capital
member members: member
"""
_RELATION_OF_WORD = {
    word: meant.strip()
    for words, _, meant in (line.partition(":") for line in _RELATION_WORDS.strip().splitlines())
    for word in words.split()
}
_KINDS = frozenset(
    """film films movie movies song songs album albums book books novel novels band bands person people man woman
    series show shows city company team same share shared both two name named known called many""".split()
)
"""What a question says its names are, and how it compares them; no relation is meant."""


@lru_cache(maxsize=16_384)
def relation_terms(predicate: str, kind: str) -> frozenset[str]:
    """Terms of a predicate and of what its object is."""
    return frozenset(terms(predicate, "en")) | (frozenset({"date"}) if kind == "date" else frozenset())


def find_asked_terms(words: Iterable[str]) -> Sequence[frozenset[str]]:
    """For each thing that a question's words ask for, the terms that relations say it by.

    Words that ask for the same count once.
    """
    question_terms = dict.fromkeys(
        frozenset(terms(_RELATION_OF_WORD[word], "en"))
        if word in _RELATION_OF_WORD
        else frozenset(terms(word, "en"))
        for word in (word.casefold() for word in words)
        if word not in _KINDS
    )
    return [terms_ for terms_ in question_terms if terms_]
