"""Keys: how buckets are named, and when one covers another."""

from __future__ import annotations

import re

from zerograd.static.engine.identity.definitions import Instance
from zerograd.static.engine.identity.values import (
    NOTHING,
    Constant,
    Gradient,
    Leaf,
    Mapping,
    Module,
    Named,
    Optimizer,
    Params,
    Scaler,
    Several,
    Tensor,
    Tested,
    Value,
    leaves_of,
    read_in,
)
from zerograd.static.engine.text.words import FRAME


def keys_of(value: Value) -> frozenset[str]:
    """Return the buckets that `value`, taken as a source of parameters, names."""
    found: set[str] = set()
    for each in leaves_of(value):
        if isinstance(each, Params):
            found |= each.keys
        elif isinstance(each, (Module, Leaf, Instance)):
            found.add(each.key)
        elif isinstance(each, Named):
            found.add(each.path)
        elif isinstance(each, Optimizer):
            found |= each.keys if each.keys is not None else {f"?{each.key}"}
        elif isinstance(each, Gradient):
            found |= keys_of(each.of)
    return frozenset(found)


def covers(key: str, bucket: str) -> bool:
    """Does an event on `key` reach the whole of `bucket`?

    >>> covers("net", "net.head"), covers("nets[*]", "nets[0]"), covers("net.head", "net")
    (True, True, False)
    >>> covers("all[*].actor", "all[0].actor.head"), covers("all[*].actor", "all[0].critic")
    (True, False)
    """
    if bucket == key or bucket.startswith(f"{key}.") or bucket.startswith(f"{key}["):
        return True
    if "[*]" in key:
        base, _, part = key.partition("[*]")
        if not part.startswith("."):
            return bucket.startswith(f"{base}[")
        # of each one a part: `agents[*].critic` is nothing to `agents[0].actor`
        place = bucket.removeprefix(base)
        own = place != bucket and place.startswith("[")
        return own and covers(part, place.partition("]")[2])
    return False


def touches(key: str, bucket: str) -> bool:
    """Does an event on `key` reach a part of `bucket`, or all of it?"""
    return covers(key, bucket) or covers(bucket, key)


def joined(values: list[Value]) -> Value:
    """Return one value for several that a variable may hold."""
    known = [
        value
        for value in values
        if value is not NOTHING and not (isinstance(value, Constant) and value.value is None)
    ]
    if not known:
        return values[0] if values else NOTHING
    if NOTHING in values and all(isinstance(value, (Constant, Tested)) for value in known):
        return NOTHING  # a flag that may be set, and what it was before is not known
    first = known[0]
    if all(value is first or value.ident == first.ident for value in known[1:]):
        return first
    tensors = [value for value in known if isinstance(value, Tensor)]
    if tensors:
        return Tensor(
            frozenset().union(*(value.deps for value in tensors)),
            sure=all(value.sure for value in tensors) and len(tensors) == len(known),
            # scaled on one branch only: which one is taken where is not for this value to say
            scaler=_same_scaler(tensors, len(known)),
            averaged=any(value.averaged for value in tensors),
            leaves=frozenset().union(*(value.leaves for value in tensors)),
            read=read_in(tensors),
        )
    if all(isinstance(value, (Constant, Tested)) for value in known):
        return NOTHING  # one truth or another
    if all(isinstance(value, Params) for value in known):
        return Params(
            keys_of(Several(known)),
            one=any(getattr(value, "one", False) for value in known),
            either=_are_others(known),
            part=any(getattr(value, "part", False) for value in known),
        )
    if any(isinstance(value, Params) for value in known) and all(
        any(isinstance(each, Params | Leaf) for each in leaves_of(value)) for value in known
    ):  # copies of them, perhaps: `[(n, p.clone().detach()) for n, p in net.named_parameters()]`
        return Params(keys_of(Several(known)), either=_are_others(known))
    optimizers = [value for value in known if isinstance(value, Optimizer)]
    if len(optimizers) > 1:
        return _either_optimizer(optimizers)
    if optimizers:
        return optimizers[0]  # beside it, at most a wrapper around it
    scalers = [value for value in known if isinstance(value, Scaler)]
    if scalers:  # beside it, at most a stand-in that scales nothing
        return next((value for value in scalers if value.live), scalers[0])
    longest = _longest(known)
    if longest is not None:
        return longest
    dicts = [value for value in known if type(value) is Mapping]
    if len(dicts) == len(known):
        return _united(dicts)
    lasting = [
        value for value in known if isinstance(value, (Optimizer, Module, Instance, Mapping))
    ]
    return lasting[0] if lasting else first


def _longest(values: list[Value]) -> Several | None:
    """Of `[a] if alone else [a, b]` the one that holds all that any of them does."""
    lists = [value for value in values if isinstance(value, Several) and not value.open]
    if len(lists) < len(values):
        return None
    longest = max(lists, key=lambda each: len(each.items))
    idents = [each.ident for each in longest.items]
    heads = ([item.ident for item in each.items] for each in lists)
    return longest if all(head == idents[: len(head)] for head in heads) else None


def _united(dicts: list[Mapping]) -> Mapping:
    """Of `{"all": a} if alone else {"d": b, "g": c}` one that holds all that any of them does."""
    keys = dict.fromkeys(key for each in dicts for key in each.items)
    return Mapping(
        {key: joined([each.items[key] for each in dicts if key in each.items]) for key in keys}
    )


def _are_others(values: list[Value]) -> bool:
    """Are these the parameters of one network or else of another, not of more and fewer?"""
    keys = [keys_of(value) for value in values]
    return max(map(len, keys)) < len(frozenset().union(*keys))


def _same_scaler(tensors: list[Tensor], number: int) -> str:
    scalers = {value.scaler for value in tensors}
    return scalers.pop() if len(scalers) == 1 and len(tensors) == number else ""


def _either_optimizer(optimizers: list[Optimizer]) -> Optimizer:
    """One of several optimizers, as `if adam: opt = Adam(…) else: opt = SGD(…)` makes."""
    keys: frozenset[str] | None = frozenset()
    for each in optimizers:
        keys = None if keys is None or each.keys is None else keys | each.keys
    either = Optimizer(optimizers[0].key, keys)
    either.windowed = any(each.windowed for each in optimizers)
    either.made = all(each.made for each in optimizers)
    either.clears_itself = any(each.clears_itself for each in optimizers)
    either.vague = frozenset().union(*(each.vague for each in optimizers))
    either.picks = {  # whichever it is, it has a part
        key: [picks for each in optimizers for picks in each.picks[key]]
        for key in optimizers[0].picks
        if all(key in each.picks for each in optimizers)
    }
    return either


def comes_from(value: Value, key: str) -> bool:
    """Is it seen that the value, or a part of it, is computed by this network?"""
    return any(
        touches(each, key)
        for part in leaves_of(value)
        if isinstance(part, Tensor)
        for each in part.deps
    )


def is_named_only(bucket: str) -> bool:
    """Are these parameters that nothing but their name tells of: `params`?"""
    return "param" in bucket.rsplit(".", 1)[-1].lower()


def is_within(key: str, bucket: str) -> bool:
    """Is it the bucket itself, or a part of it?"""
    return key == bucket or key.startswith(f"{bucket}.")


def frame_of(bucket: str) -> int:
    """Return the number of the function that a bucket is local to, or 0."""
    number = re.split(r"[.\[ ]", bucket.rpartition("@")[2], maxsplit=1)[0]
    return int(number) if number.isdigit() and "@" in bucket else 0


def spelled(key: str) -> str:
    """Return a key as the user writes it: what bears one name may be one thing.

    >>> spelled("net@5"), spelled("algo@6.model")
    ('net', 'algo.model')
    """
    return FRAME.sub("", key)


def stem(key: str) -> str:
    """Return the first name of a key, which whatever covers another has in common with it."""
    return key.split(".", 1)[0].split("[", 1)[0]
