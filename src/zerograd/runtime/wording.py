"""Our own names for optimizers, scalers and buckets, put into the user's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from zerograd.runtime.buckets import Bucket
from zerograd.runtime.names import name_in_frames, parameter_names
from zerograd.runtime.owners import IN_BACKWARD

if TYPE_CHECKING:
    from zerograd.runtime.recorder import Recorder


def word_of(token: str, recorder: Recorder, models: Iterable[Any]) -> str:
    """Return the user's name for an optimizer, scaler or bucket of ours."""
    kind = token.partition("#")[0]
    if kind == IN_BACKWARD:
        return kind
    if kind == "bucket":
        bucket = recorder.partition.by_name.get(token)
        return name_of(bucket, models) if bucket is not None else "the parameter"
    if recorder.names.get(token):
        return recorder.names[token]
    owner = recorder.owners.by_name.get(token)
    optimizer = owner.ref() if owner is not None else None
    if optimizer is None:
        return kind
    here = name_in_frames(optimizer, within=True)
    return here or recorder.held_as.get(token) or type(optimizer).__name__


def name_of(bucket: Bucket, models: Iterable[Any]) -> str:
    """Return what to call the parameters of a bucket: by the first one, or how many they are."""
    parameters = bucket.parameters()
    if len(parameters) == 1:
        name = name_in_frames(parameters[0], within=True)
        if name:
            return name
    names = names_of((bucket,), models)
    if names:
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    if len(bucket.members) == 1:
        return "the leaf" if bucket.leaf else "the parameter"
    many = f"{len(bucket.members)} parameters"
    return many if parameters else f"{many} that are gone by now"


def names_of(buckets: Sequence[Bucket], models: Iterable[Any]) -> list[str]:
    """Return the names of all parameters in these buckets; of what is gone, those it had."""
    parameters = [each for bucket in buckets for each in bucket.parameters()]
    names = parameter_names(parameters, models) if parameters else []
    if names:
        return names
    return [name for bucket in buckets for name in bucket.names]
