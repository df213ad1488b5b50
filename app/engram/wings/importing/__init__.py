"""The wing that makes passages of documents: `POST /documents` and `engram import`."""
