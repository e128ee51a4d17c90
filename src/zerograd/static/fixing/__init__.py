"""Fixes: what may cure a finding, the edit that does it, and the proof that it did."""
