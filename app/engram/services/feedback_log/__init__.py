"""Learned state as a function of the log: each state anew from what it began as and the events that count."""
