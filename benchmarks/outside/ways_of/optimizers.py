"""Optimizers that others wrote."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.outside.way import Way, made

_TIMM = (
    "adafactor adafactorbv madgrad nadamw lars lamb lion adan novograd sgdp nvnovograd rmsproptf "
    "laprop mars kron adopt muon cadamw lookahead_adamw"
)
_TORCH_OPTIMIZER = (
    "AccSGD AdaBound AdaMod Adafactor AdamP AggMo Apollo DiffGrad Lamb NovoGrad PID QHAdam QHM "
    "RAdam Ranger RangerQH RangerVA SGDP SGDW SWATS Yogi Shampoo"
)
_WITH_SECOND_ORDER = ("adahessian", "sophiah")
_NOT_LIKE_OTHERS = ("lomo", "adalomo", "lbfgs", "bsam", "demo", "distributedmuon")


def _pytorch_optimizer() -> Iterator[Way]:
    import pytorch_optimizer

    for name in pytorch_optimizer.get_supported_optimizers():
        if name in _NOT_LIKE_OTHERS:  # they step in the backward, or need closures or ranks
            continue

        def make(parameters: Any, name: str = name) -> Any:
            kind: Any = pytorch_optimizer.load_optimizer(name)
            try:
                return kind(parameters, lr=1e-3)
            except TypeError:
                return kind(parameters)

        yield Way(name, made(optimizer=make), keeps_graph=name in _WITH_SECOND_ORDER)


def _slow(kind: Any) -> Any:
    return lambda parameters: kind(parameters, lr=1e-3)


def _torch_optimizer() -> Iterator[Way]:
    import torch_optimizer

    for name in _TORCH_OPTIMIZER.split():
        yield Way(name, made(optimizer=_slow(getattr(torch_optimizer, name))))


def _timm() -> Iterator[Way]:
    from timm.optim import create_optimizer_v2

    for name in _TIMM.split():

        def make(parameters: Any, name: str = name) -> Any:
            return create_optimizer_v2(parameters, opt=name, lr=1e-3)

        yield Way(name, made(optimizer=make))


def _schedulefree() -> Iterator[Way]:
    import schedulefree

    def make(parameters: Any) -> Any:
        optimizer = schedulefree.AdamWScheduleFree(parameters, lr=0.01)
        optimizer.train()
        return optimizer

    yield Way("AdamWScheduleFree", made(optimizer=make))


def _prodigy() -> Iterator[Way]:
    from prodigyopt import Prodigy

    yield Way("Prodigy", made(optimizer=Prodigy))


def _lion() -> Iterator[Way]:
    from lion_pytorch import Lion

    yield Way("Lion", made(optimizer=_slow(Lion)))


def _came() -> Iterator[Way]:
    from came_pytorch import CAME

    yield Way("CAME", made(optimizer=_slow(CAME)))


def _adabelief() -> Iterator[Way]:
    from adabelief_pytorch import AdaBelief

    yield Way("AdaBelief", made(optimizer=lambda each: AdaBelief(each, print_change_log=False)))


def _torchao() -> Iterator[Way]:
    from torchao.optim import AdamW4bit, AdamW8bit

    for kind in (AdamW8bit, AdamW4bit):
        yield Way(kind.__name__, made(optimizer=_slow(kind)))


PACKAGES = {
    "pytorch_optimizer": _pytorch_optimizer,
    "torch_optimizer": _torch_optimizer,
    "timm": _timm,
    "schedulefree": _schedulefree,
    "prodigyopt": _prodigy,
    "lion-pytorch": _lion,
    "came-pytorch": _came,
    "adabelief-pytorch": _adabelief,
    "torchao": _torchao,
}
