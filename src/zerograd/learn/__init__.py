"""The exercises in the shell: starters to copy, checks to pass, hints, progress.

Stands beside the tool, not in its flow: it sees the public names of zerograd and
nothing else. Torch is imported only by the exercises that are about torch, and
those run in a process of their own.
"""
