"""What a network has beside the parts that optimizers of their own hold: there may be nothing.

    actor_opt, critic_opt = Adam(net.actor.parameters()), Adam(net.critic.parameters())
    whole_opt = Adam(net.parameters())

Who clears the first two has mostly cleared the third. Of one part alone that is not so: it would
not have been named if it were all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from zerograd.lifecycle.verdicts import Verdict, judge_set
from zerograd.static.engine.identity.keys import is_within

if TYPE_CHECKING:
    from collections.abc import Callable

    from zerograd.lifecycle.events import Event
    from zerograd.static.engine.judging.unscaled import States

_ENOUGH = 3  # itself, and two parts of it


def unless_of_the_rest_alone(
    verdicts: list[Verdict], held: dict[str, States], event: Event, varies: Callable[[str], bool]
) -> list[Verdict]:
    """Take the certainty from those that the known parts of what is held do not break.

    Some rules are broken by one bucket of several: it may be one that is empty.
    """
    known = {
        bucket: states
        for bucket, states in held.items()
        if sum(is_within(other, bucket) for other in held) < _ENOUGH
    }
    if len(known) == len(held):
        return verdicts
    return [
        each
        if not each.certain or any(v.certain for v in judge_set(known, event, [each.rule], varies))
        else replace(each, certain=False)
        for each in verdicts
    ]
