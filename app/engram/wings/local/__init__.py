"""The wing of one machine: embedded servers, ``engram up``, and the sample corpus."""
