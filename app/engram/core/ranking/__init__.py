"""Ranking of passages: scores, weights, complementarity, sufficiency, question memory."""
