"""Replicas: which reads may go to one."""
