"""Nothing is instrumented here."""

from collections import defaultdict

meta_vars = defaultdict(int)  # the programs count their steps in it
