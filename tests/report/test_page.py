"""Markdown pages on a terminal."""

from __future__ import annotations

import re

from zerograd.report.page import render

PAGE = """\
# ZG101 stale-gradient

A step uses gradients that an *earlier* step **already used**, because nothing called
`optimizer.zero_grad()` in between; see [the machine](../explanation/semantics.md).

## Why it hurts

| epoch | right | stale |
|---|---:|---|
| 1 | 0.21 | 0.83 |
| 2 | 0.11 | 12.4, which is rather more than it ought to be after two epochs of training |

- one item that is quite long and goes on and on so that it must be wrapped at the end of a line
  and continues here
- two

```python bad
for inputs, targets in loader:
    # never cleared

    loss.backward()
    optimizer.step()  # <- ZG101
```

The end.
"""


def test_a_page_reads_like_this(golden):
    golden("terminal/page.txt", render(PAGE, width=72))


def test_text_fits_and_code_is_left_alone():
    long = "x = " + "1 + " * 60 + "1"
    shown = render(f"{'word ' * 60}\n\n```python\n{long}\n```\n", width=50)
    assert f"    {long}" in shown.splitlines()
    assert all(len(line) <= 50 for line in shown.splitlines() if "1 + 1" not in line)


def test_colour_changes_no_letter():
    colored = render(PAGE, width=72, color=True)
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == render(PAGE, width=72)


def test_stars_in_code_stay():
    assert render("`a * b * c` and **kwargs** and `**kwargs`") == (
        "`a * b * c` and kwargs and `**kwargs`\n"
    )


def test_an_unclosed_fence_loses_nothing():
    assert "    last line" in render("```python\nfirst\nlast line")


def test_an_empty_page_is_no_error():
    assert render("") == "\n"
