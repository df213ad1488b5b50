"""A verdict: begin with ``verdict_service``, then ``verdict``, ``log``, ``resolution``, ``learn``, ``receipt``.

A ``Verdict`` is what a judge sent, a ``LoggedVerdict`` the same by ids, a ``VerdictEvent`` its row in the log, a
``PendingEvent`` one that waits to be applied, a ``LabelledEvent`` what an effect learns of it.
"""
