"""What a ranking reads of its candidates, held against the searches that it is made of."""

from engram.composition.container import Application
from engram.storage.corpus import collections, lexical_index
from engram.storage.question import passage_candidates, passages_by_key
from engram.storage.question.query_focus import Focus, GraphLimits

LIMITS = GraphLimits(hub_limit=10, candidate_limit=10)
TERMS = {"river": 1.0, "curi": 1.0}


def test_candidates_are_the_nearest_those_that_match_best_and_those_given(
    application: Application, curie: str
) -> None:
    question = application.models.embedder.embed(["Which river flows through the city where Curie was born?"])[0]
    with application.database.read() as reader:
        focus = Focus(collections.find(reader, curie), question, limits=LIMITS)
        every = passages_by_key.find_nearest_passages(reader, focus, 100)
        words = lexical_index.search(
            reader, focus.collection, TERMS, 100, passage_candidates.build_word_search(focus)
        )
        found = passage_candidates.find(reader, focus, TERMS, 1, [list(every)[-1]])
        again = passage_candidates.find(reader, focus, TERMS, 1, [list(every)[-1]], near=list(every))
        alone = passage_candidates.find(reader, focus, {}, 2)
    assert len(every) > 3
    assert set(words) < set(every)
    assert found.ids.tolist() == sorted({next(iter(every)), next(iter(words)), list(every)[-1]})
    assert again.ids.tolist() == found.ids.tolist()
    for one in (found, again):
        for at, passage in enumerate(one.ids.tolist()):
            assert abs(one.similarity[at] - every[passage].similarity) < 1e-6
            assert one.titles[at] == every[passage].title
            assert one.word_scores[at] == words.get(passage, 0.0)
            assert one.words.in_passages[at].any() == (passage in words)
    assert set(alone.ids.tolist()) == set(list(every)[:2])
    assert alone.words.in_passages.shape == (2, 0)
