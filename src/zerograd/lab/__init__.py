"""The interactive page: experiments recorded from real runs, a template, its assets.

Only `recorder/` imports torch. What it recorded is kept as `recorded.json`, so
that the page can be made where torch is not installed.
"""
