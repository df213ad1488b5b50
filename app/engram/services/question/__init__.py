"""The way of a question, in reading order.

``pipeline`` has all steps: ``query`` -> ``plan`` -> ``search`` (the loop; it alone opens snapshots) -> ``align`` ->
``walk``, which begins with ``recall`` (``question_spreads``) -> ``candidates`` -> ``ranking``, with ``sufficiency``
-> ``reranking`` -> ``versions`` -> ``shown`` -> ``answer``, with ``trace_building``, which makes a ``trace`` ->
``episode``. ``retriever`` makes hops and ranks for the profile of a wing. ``caches`` has what a process keeps.
"""
