"""The way of a question, in reading order.

``pipeline`` has all steps: ``query`` -> ``plan`` -> ``search`` (the loop; it alone opens snapshots) -> ``align`` ->
``walk``, which begins with ``recall`` (``question_spreads``) -> ``candidates`` -> ``ranking``, with ``sufficiency``
and ``reranking`` -> ``versions`` -> ``shown`` -> ``answer``, with ``trace`` -> ``episode``. ``caches`` has what a
process keeps between questions.
"""
