"""Events on disk: one JSON object a line, a versioned header first.

The sanitizer writes through `writer`, everything that shows a run reads through
`reader`, and `format` holds what the two agree on.
"""
