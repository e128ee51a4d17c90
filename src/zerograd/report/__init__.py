"""Findings become text here: for a person, an editor, a build machine. Nothing is decided here."""
