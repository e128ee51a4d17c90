"""What torch itself offers: layers, graphs, modes, kinds of tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize, prune
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from benchmarks.outside.way import Made, Way, made, small

_OPTIMIZERS = "Adadelta Adafactor Adagrad Adam AdamW Adamax ASGD NAdam RAdam RMSprop Rprop SGD"


def _around_first(wrap: Any) -> Any:
    return lambda: nn.Sequential(wrap(nn.Linear(4, 8)), nn.ReLU(), nn.Linear(8, 1))


def _layers() -> Iterator[Way]:
    yield Way("plain", made())
    for wrap in (parametrizations.weight_norm, parametrizations.spectral_norm):
        yield Way(wrap.__name__, made(_around_first(wrap)))
    yield Way("orthogonal", made(_around_first(parametrizations.orthogonal)))
    cached = made(_around_first(parametrizations.weight_norm))
    yield Way("parametrize.cached", cached, forward=parametrize.cached)
    yield Way("prune", made(_around_first(lambda each: prune.l1_unstructured(each, "weight", 0.3))))
    yield Way("complex", made(_Complex))
    yield Way("sparse", made(_Rows))
    yield Way("quantisation aware", made(_quantised))


class _Complex(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 1, dtype=torch.cfloat))

    def forward(self, given: Tensor) -> Tensor:
        return (given.to(torch.cfloat) @ self.weight).abs()


class _Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Embedding(10, 4, sparse=True)

    def forward(self, given: Tensor) -> Tensor:
        picked: Tensor = self.rows(torch.arange(len(given)) % 7)
        return picked


def _quantised() -> Any:
    from torch.ao import quantization

    model = nn.Sequential(
        quantization.QuantStub(), nn.Linear(4, 8), nn.ReLU(), quantization.DeQuantStub()
    )
    model.train()
    model.qconfig = quantization.get_default_qat_qconfig("fbgemm")
    return quantization.prepare_qat(model)


def _graphs() -> Iterator[Way]:
    for reentrant in (True, False):

        def whole(net: Any, given: Tensor, reentrant: bool = reentrant) -> Any:
            return checkpoint(net, given.requires_grad_(), use_reentrant=reentrant).mean()

        def parts(net: Any, given: Tensor, reentrant: bool = reentrant) -> Any:
            given.requires_grad_()
            return checkpoint_sequential(net, 2, given, use_reentrant=reentrant).mean()

        kind = "reentrant" if reentrant else "not reentrant"
        yield Way(f"checkpoint, {kind}", made(loss=whole))
        yield Way(f"checkpoint_sequential, {kind}", made(loss=parts))
    yield Way("double backward", made(loss=_penalty))
    yield Way("functional_call", made(loss=_functional))
    yield Way("save_on_cpu", made(), forward=torch.autograd.graph.save_on_cpu)
    anomaly = torch.autograd.detect_anomaly
    yield Way("detect_anomaly", made(), forward=anomaly, backward=anomaly)
    yield Way("jit.script", made(lambda: torch.jit.script(small())))
    yield Way("fx", made(lambda: torch.fx.symbolic_trace(small())))
    yield Way("export", made(_exported))
    for backend in ("eager", "aot_eager"):
        yield Way(f"compile, {backend}", made(_compiled(backend)))


def _compiled(backend: str) -> Any:
    return lambda: torch.compile(small(), backend=backend)


def _exported() -> Any:
    return torch.export.export(small(), (torch.randn(16, 4),)).module()


def _penalty(net: Any, given: Tensor) -> Tensor:
    given = given.detach().requires_grad_()
    out = net(given)
    (slope,) = torch.autograd.grad(out.sum(), given, create_graph=True)
    loss: Tensor = slope.pow(2).mean() + out.pow(2).mean()
    return loss


def _functional(net: Any, given: Tensor) -> Any:
    return torch.func.functional_call(net, dict(net.named_parameters()), given).pow(2).mean()


class _Listed(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class _Wrapped(Tensor):
    @staticmethod
    def __new__(cls, inner: Tensor) -> Any:
        return Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner: Tensor) -> None:
        self.held = inner

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        args, kwargs = tree_map_only(cls, lambda each: each.held, (args, kwargs or {}))
        return tree_map_only(Tensor, cls, func(*args, **kwargs))


def _wrapped() -> Made:
    weight = nn.Parameter(_Wrapped(torch.randn(4)))
    optimizer = torch.optim.SGD([weight], lr=0.01, foreach=False)
    return Made([], optimizer, lambda: weight.pow(2).sum())


def _modes() -> Iterator[Way]:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils.flop_counter import FlopCounterMode

    yield Way("flop counter", made(), whole=lambda: FlopCounterMode(display=False))
    yield Way("a dispatch mode", made(), whole=_Listed)
    yield Way("fake tensors", made(), whole=FakeTensorMode)
    yield Way("meta tensors", made(), whole=lambda: torch.device("meta"))
    yield Way("a wrapper subclass", _wrapped)
    for kind in (torch.bfloat16, torch.float16, torch.float64):

        def typed(kind: torch.dtype = kind) -> Any:
            return small().to(kind)

        def inputs(kind: torch.dtype = kind) -> Tensor:
            return torch.randn(16, 4).to(kind)

        yield Way(str(kind), made(typed, inputs=inputs))
    yield Way("autocast", made(), forward=lambda: torch.autocast("cpu", dtype=torch.bfloat16))


def _optimizers() -> Iterator[Way]:
    for name in _OPTIMIZERS.split():
        for option in ({}, {"foreach": True}, {"foreach": False}, {"fused": True}):
            kind = getattr(torch.optim, name)

            def make(parameters: Any, kind: Any = kind, option: Any = option) -> Any:
                return kind(parameters, lr=0.01, **option)

            yield Way(f"{name} {option or ''}".strip(), made(optimizer=make))


def _all() -> Iterator[Way]:
    yield from _layers()
    yield from _graphs()
    yield from _modes()
    yield from _optimizers()


PACKAGES = {"torch": _all}
