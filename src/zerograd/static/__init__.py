"""The static witness: source code in, findings out. It never imports or runs what it reads."""
