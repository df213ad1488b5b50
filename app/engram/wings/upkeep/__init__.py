"""The wing of upkeep: `engram backup`, `engram restore`, and the doctor, which looks at the whole installation."""
