"""Tenants and access keys, as they are stored."""
