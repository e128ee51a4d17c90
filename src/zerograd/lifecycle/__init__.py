"""The pure core: events, buckets, the machine, and what it means to break a rule.

Standard library only; no files, no clock, no torch. Both witnesses, the static
checker and the sanitizer, speak to everything else through these types.
"""
