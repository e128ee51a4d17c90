"""Comments that allow a finding: pure text in, allowances out.

    opt.step()  # zerograd: allow[stale-gradient] momentum by hand, on purpose

A comment at the end of a statement speaks for that statement. Alone on a line
it speaks for the statement below. On the first line of a block (`for`, `with`,
`def`, ...), or alone above it, it speaks for the whole block. `# noqa: ZG101` and
a bare `# noqa` speak for their own statement only.

Both witnesses read these, so it knows of no files and no rules' modules.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass

_ALLOW = re.compile(
    r"#\s*zerograd:\s*(?P<verb>[\w-]+)\s*(?P<list>\[(?P<names>[^\]]*)\])?"
    r"(?P<reason>(?:(?!#\s*(?:zerograd:|noqa)).)*)",
    re.IGNORECASE,
)
_NOQA = re.compile(
    r"#\s*noqa(?P<codes>\s*:\s*(?P<list>[A-Z]+[0-9]*(?:[,\s]+[A-Z]+[0-9]+)*))?", re.I
)
# one that names no code, or one of ours: most name other tools' alone
_NOQA_FOR_US = re.compile(r"#\s*noqa(?:(?!\s*:\s*[A-Z])|[^\n]*\bZG)", re.I)


@dataclass(frozen=True, slots=True)
class Allowance:
    """One comment, and the lines it speaks for.

    `words` are names, codes or starts of codes as the user wrote them; empty
    means every rule, which only a bare `# noqa` may say.
    """

    line: int  # of the comment itself
    column: int
    first: int  # the lines it speaks for
    last: int
    words: tuple[str, ...]
    reason: str
    noqa: bool = False
    malformed: str = ""  # what is wrong with its form, if anything

    def words_for(self, code: str, name: str) -> tuple[str, ...]:
        """Return those of its words that mean this rule."""
        return tuple(word for word in self.words if _is_meant(word, code, name))

    def names(self, code: str, name: str) -> bool:
        """Does it speak of this rule?"""
        if self.malformed:
            return False
        return bool(self.words_for(code, name)) or (self.noqa and not self.words)

    def covers(self, code: str, name: str, line: int, end_line: int = 0) -> bool:
        """Does it allow this rule to be broken at these lines?"""
        return self.first <= max(end_line, line) and line <= self.last and self.names(code, name)


def _is_meant(word: str, code: str, name: str) -> bool:
    return word.lower() == name or (len(word) > 2 and code.startswith(word.upper()))


def read_allowances(text: str) -> tuple[Allowance, ...]:
    """Return the allow comments of a Python source, in order, if one may speak of our rules.

    Strings that only look like comments are none. A text that cannot be split
    into tokens has no allowances after the place where that shows.

    >>> [each.words for each in read_allowances("f()  # zerograd: allow[ZG101] known\\n")]
    [('ZG101',)]
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "zerograd:" not in text and not _NOQA_FOR_US.search(text):
        return ()
    found: list[Allowance] = []
    for comment in _comments(text):
        found += _allowances(comment)
    return tuple(found)


@dataclass(slots=True)
class _Comment:
    text: str
    line: int
    column: int
    alone: bool
    first: int = 0  # of the statement it belongs to
    last: int = 0
    block_last: int = 0  # of the block that this statement opens


def _comments(text: str) -> list[_Comment]:
    """Return all comments with the statement, and the block, that each belongs to."""
    import tokenize  # only for files that have such a comment

    comments: list[_Comment] = []
    waiting: list[_Comment] = []  # read, their statement not yet ended
    opened: list[list[_Comment]] = []  # per open block, the comments of its header
    header: list[_Comment] = []  # comments of the statement just ended
    start = end = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            kind = token.type
            if kind == tokenize.COMMENT:
                alone = not start
                comments.append(_Comment(token.string, token.start[0], token.start[1] + 1, alone))
                waiting.append(comments[-1])
            elif kind == tokenize.NEWLINE:
                for comment in waiting:
                    comment.first, comment.last = start or token.start[0], token.start[0]
                header, waiting, start = waiting, [], 0
                end = token.start[0]
            elif kind == tokenize.INDENT:
                opened.append(header)
            elif kind == tokenize.DEDENT:
                if opened:
                    for comment in opened.pop():
                        comment.block_last = end
            elif kind not in (tokenize.NL, tokenize.ENDMARKER) and not start:
                start = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        pass  # the rest has no allowances; the checker reports the file itself
    for block in opened:
        for comment in block:
            comment.block_last = end
    return comments


def _allowances(comment: _Comment) -> list[Allowance]:
    found = []
    block_last = max(comment.last, comment.block_last)
    for match in _ALLOW.finditer(comment.text):
        words = tuple(word.strip() for word in (match["names"] or "").split(",") if word.strip())
        malformed = ""
        if match["verb"].lower() != "allow":
            if match["list"] is None:
                continue  # prose that happens to begin with our name
            malformed = f"`zerograd: {match['verb']}` means nothing"
        elif match["list"] is None or not words:
            malformed = "it names no rule"
        found.append(
            Allowance(
                line=comment.line,
                column=comment.column + match.start(),
                first=comment.first or comment.line,
                last=block_last or comment.line,
                words=words,
                reason=match["reason"].strip(" \t:-"),
                malformed=malformed,
            )
        )
    for match in _NOQA.finditer(comment.text):
        listed = match["list"] or ""
        found.append(
            Allowance(
                line=comment.line,
                column=comment.column + match.start(),
                first=comment.first if not comment.alone else comment.line,
                last=comment.last if not comment.alone else comment.line,
                words=tuple(re.split(r"[,\s]+", listed)) if listed else (),
                reason="",
                noqa=True,
            )
        )
    return found
