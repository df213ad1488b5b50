"""The wing that makes passages of documents: `POST /documents`, `engram import` and the routes that oikb calls."""
