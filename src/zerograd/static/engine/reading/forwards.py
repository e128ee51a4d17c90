"""Forwards of the project's own networks: which parts an output comes through, which it cuts off.

`vae(x, of_discriminator=True)` gives a loss of one part of a network, `vae(x)` one of all of them,
and each part may have an optimizer of its own.
"""

from __future__ import annotations

from zerograd.static.engine.identity.arguments import Arguments
from zerograd.static.engine.identity.definitions import Function, Instance
from zerograd.static.engine.identity.frame import Frame
from zerograd.static.engine.identity.keys import is_within
from zerograd.static.engine.identity.values import Named, Tensor, Value
from zerograd.static.engine.reading.unseen import are_apart


def cuts(method: Function, arguments: Arguments) -> bool:
    """May a forward cut off something of what it runs, or of what it is handed?"""
    text = method.unit.text_of(method.node)
    return "detach" in text or "no_grad" in text or are_apart(arguments)


def as_read(output: Value, given: Value, network: Instance) -> Value:
    """Return a network's output as what its forward gives back: with the parts it comes through.

    The whole stays among them, since not all of a forward is understood; but it proves nothing of
    a part.
    """
    computed = Arguments([given], {}).computed()
    if type(output) is not Tensor or network.key not in output.deps:
        return output
    known = computed if isinstance(computed, Tensor) else Tensor(sure=False)
    owned = any(is_within(each, network.key) for each in known.leaves)  # parameters by themselves
    if owned or (known.sure and known.deps):  # whom does it cut off?
        whole = Tensor(frozenset((network.key,)))
        output = Tensor(
            known.deps | whole.deps,
            scaler=known.scaler,
            averaged=known.averaged,
            leaves=known.leaves,
            read=known.read,
        )
    output.deps |= frozenset(each for each in known.deps if is_within(each, network.key))
    output.read |= {network.key}
    return output


def hands_networks(frame: Frame, arguments: Arguments) -> bool:
    """Is a network among the arguments, by what it is or by what was done with it?"""
    return arguments.has_modules() or any(
        type(each) is Named and each.path in frame.program.networks for each in arguments.leaves()
    )
