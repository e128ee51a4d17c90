"""The two witnesses on the same programs: generated, run on torch, read, compared, shrunk."""
