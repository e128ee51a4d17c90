"""Notebooks made for tests."""

from __future__ import annotations

import json
from typing import Any


def notebook(*cells: str, language: str = "python", **more: Any) -> bytes:
    """Return a notebook with these code cells, written as Jupyter writes it."""
    shape = {
        "cells": [
            {
                "cell_type": "code",
                "execution_count": None,
                "id": f"c{number}",
                "metadata": {},
                "outputs": [],
                "source": [line + "\n" for line in lines[:-1]] + lines[-1:],
            }
            for number, lines in enumerate(cell.split("\n") for cell in cells)
        ],
        "metadata": {"language_info": {"name": language}},
        "nbformat": 4,
        "nbformat_minor": 5,
        **more,
    }
    return (json.dumps(shape, indent=1, ensure_ascii=False) + "\n").encode()
