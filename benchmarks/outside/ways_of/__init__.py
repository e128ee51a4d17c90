"""Ways to train, by what they go through: each module has PACKAGES, functions that yield ways."""
