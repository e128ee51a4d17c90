"""How a file writes what it asks of a number, and what it sets it to."""

from __future__ import annotations


def is_asked(text: str, name: str, number: str) -> bool:
    """Is `name == number` or `name != number` written anywhere, with whatever spaces?"""
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        rest = text[end : end + 40].lstrip(" ")
        if rest.startswith(("==", "!=")):
            before = text[at - 1 : at]
            rest = rest[2:].lstrip(" ")
            whole = not _is_word(before) and before != "."
            if whole and rest.startswith(number) and not _is_word(rest[len(number) :][:1]):
                return True
        at = text.find(name, end)
    return False


def is_set_back(text: str, name: str) -> bool:
    """Is `name = 0` written as a statement, and not as an argument's default?"""
    written = f"{name} = 0"
    at = text.find(written)
    while at >= 0:
        end = at + len(written)
        starts = text[at - 1 : at] in (" ", ".") and text[at - 2 : at - 1] != ","
        if starts and not _is_word(text[end : end + 1]):
            return True
        at = text.find(written, end)
    return False


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
