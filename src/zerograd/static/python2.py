"""Python 2 brought into the syntax of Python 3, line for line, so that it can be read.

Only what stops the parser is rewritten: statements that became functions, exceptions after a
comma, numbers and strings that are spelled otherwise, tabs of eight.
"""

from __future__ import annotations

import io
import re
import tokenize
from typing import NamedTuple

_SPELLINGS = (
    (re.compile(r"(?<![\w.])(\d+)[lL]\b"), r"\1"),  # 10L
    (re.compile(r"(?<![\w.])0(?=[0-7]+\b(?!\.))"), "0o"),  # 0755
    (re.compile(r"\b[uU]([rR])(?=[\"'])"), r"\1"),  # ur"..."
    (re.compile(r"<>"), "!="),
)
_LEADING = re.compile(r"(?m)^[ \t]+")
_CALLED = ("print", "exec")
_ENDS = (tokenize.NEWLINE, tokenize.COMMENT, tokenize.ENDMARKER)
_BETWEEN = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE, tokenize.COMMENT)


class _Edit(NamedTuple):
    """What is written in the place of so many characters."""

    row: int
    column: int
    length: int
    text: str


def rewritten(text: str) -> str | None:
    r"""Return the program in the syntax of Python 3, or None where it cannot be taken apart.

    >>> rewritten('try:\n    print "a", b\nexcept ValueError, e:\n    raise E, "c"\n')
    'try:\n    print ("a", b)\nexcept ValueError as e:\n    raise E( "c")\n'
    """
    text = _LEADING.sub(lambda found: found[0].expandtabs(8), text)
    for spelling, instead in _SPELLINGS:
        text = spelling.sub(instead, text)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return None
    lines = io.StringIO(text).readlines()  # as the tokenizer counts them: a form feed ends none
    for edit in sorted(_edits(tokens), reverse=True):
        line = lines[edit.row - 1]
        rest = line[edit.column + edit.length :]
        lines[edit.row - 1] = line[: edit.column] + edit.text + rest
    return "".join(lines)


def _edits(tokens: list[tokenize.TokenInfo]) -> list[_Edit]:
    edits: list[_Edit] = []
    begins = True
    depth = 0
    for at, token in enumerate(tokens):
        if token.type in _BETWEEN:
            begins = begins or token.type == tokenize.NEWLINE
            continue
        if begins and token.type == tokenize.NAME:
            statement = _statement(tokens, at)
            if token.string in _CALLED:
                edits += _called(statement)
            elif token.string in ("raise", "except"):
                edits += _after_a_comma(statement)
        depth += _deeper(token)
        begins = depth == 0 and token.string in (";", ":")
    return edits


def _deeper(token: tokenize.TokenInfo) -> int:
    return (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))


def _statement(tokens: list[tokenize.TokenInfo], first: int) -> list[tokenize.TokenInfo]:
    """Return the tokens of a statement, up to the colon of one that has a block."""
    depth = 0
    found: list[tokenize.TokenInfo] = []
    for token in tokens[first:]:
        if token.type in _ENDS or (depth == 0 and token.string in (";", ":")):
            break
        if token.type != tokenize.NL:
            found.append(token)
        depth += _deeper(token)
    return found


def _called(statement: list[tokenize.TokenInfo]) -> list[_Edit]:
    """`print x` as `print (x)`; what is in parentheses, or assigned, stays."""
    if len(statement) < 2 or statement[1].string in ("(", "=", ".", ","):
        return []
    first, last = statement[1], statement[-1]
    opening = _Edit(*first.start, 2 if first.string == ">>" else 0, "(")
    return [opening, _Edit(*last.end, 0, ")")]


def _after_a_comma(statement: list[tokenize.TokenInfo]) -> list[_Edit]:
    """`except E, e` as `except E as e`; `raise E, "x"` as `raise E("x")`."""
    depth = 0
    for token in statement:
        depth += _deeper(token)
        if depth == 0 and token.string == ",":
            if statement[0].string == "except":
                return [_Edit(*token.start, 1, " as")]
            return [_Edit(*token.start, 1, "("), _Edit(*statement[-1].end, 0, ")")]
    return []
