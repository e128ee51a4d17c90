"""The page about accuracy and speed, put together from the figures in benchmarks/results."""
