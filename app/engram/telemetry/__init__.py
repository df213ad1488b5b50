"""Telemetry of a process: metrics, traces, and the request id of log lines.

Its seams are stages: a query, a verdict or a job goes through a few, and each is a span and a time in a histogram.
No label and no attribute holds what callers sent: no text, no name of a collection, judge or path. So the number of
series is bounded by the program, and whoever reads them learns nothing of anybody's data.
"""
