"""Beliefs about questions and their needs before any verdict, as in the collections that we develop on."""

import numpy as np

PRIOR_PAIRS = 20
"""Pairs, or questions, that each belief about nearness, words, contrasts and the count of evidence counts like."""
PRIOR_DIFFERENCES = 10.0
"""Pairs with the same need that the scatter of wordings begins from; they differ as much in each dimension."""
PRIOR_SHARE = 0.1
"""ρ, the share of questions whose nearest past question has the same need; its mean on the scale of log odds."""
PRIOR_EVIDENCE_COUNT = 5.0
"""Passages that may answer a question, as long as no need was asked for twice."""
MAX_NEARNESS = 12.0
"""Nearness, in standard units, is clipped here. A need can be worded in any way: up to here, each is as likely."""
PRIOR_NEARNESS = (3.0, 1.5)
"""Mean and deviation of the nearness of pairs with other evidence, in standard units."""
CROSS_LANGUAGE_NEARNESS = (2.7, 0.8)
"""``PRIOR_NEARNESS`` of pairs in two languages, in units of ``fit_to_other_languages``: of 100 normal numbers the
maximum is about 2.5."""
PRIOR_LEAD = 0.5
"""Mean of what the nearest one with other evidence is nearer than the next, in standard units."""
PRIOR_WORDS = 0.15
"""Deviation of the cosine of their words, which has its mode at 0."""
PRIOR_SAME = np.array([0.03, 0.15, 0.15, 0.3, 0.1, 0.005])
"""Share of pairs with the same evidence that have each contrast, as in paraphrases by people and models, (6,)."""
PRIOR_OTHER = np.array([0.3, 0.15, 0.3, 0.3, 0.12, 0.05])
"""The same of the nearest questions with other evidence, (6,)."""
PRIOR_NEEDS = np.array([-5.5, 0.5, 1.0, 3.0, 1.0, np.log(PRIOR_SHARE) - np.log1p(-PRIOR_SHARE)])
"""Means of w of ``repeated_needs``, (5,), and of the log odds of ρ."""
PRIOR_NEED_DEVIATIONS = np.array([1.0, 0.3, 0.5, 1.0, 0.3, 2.0])
PRIOR_VOTE = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
"""Means of the weights of ``neighbour_vote``, (5,): the log odds of the same need as they are."""
PRIOR_VOTE_DEVIATIONS = np.array([1.0, 0.3, 1.0, 1.0, 1.0])
