"""Ask every framework installed here for the same gradient twice, and keep the answers.

    python benchmarks/record_frameworks.py

The loss is (3 w), then (5 w), at w = 2. A framework that keeps the gradient on the
parameter and adds to it answers 3, then 8; one that returns gradients answers 3, then 5.
Rows of frameworks that are not installed are left as they were recorded. The lab page
shows this table; only its PyTorch row is recorded again by the tests.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
from collections.abc import Callable
from pathlib import Path

RESULTS = Path(__file__).parent.parent / "src" / "zerograd" / "lab" / "frameworks.json"
Pair = tuple[float, float]


def pytorch() -> Pair:
    import torch

    w = torch.tensor(2.0, requires_grad=True)
    (3 * w).backward()
    assert w.grad is not None
    first = float(w.grad)
    (5 * w).backward()
    return first, float(w.grad)


def tinygrad() -> Pair:
    from tinygrad import Tensor

    w = Tensor([2.0]).is_param_()
    (3 * w).sum().backward()
    first = float(w.grad.numpy()[0])
    (5 * w).sum().backward()
    return first, float(w.grad.numpy()[0])


def paddle() -> Pair:
    import paddle as framework

    w = framework.to_tensor(2.0, stop_gradient=False)
    (3 * w).backward()
    assert w.grad is not None
    first = float(w.grad)
    (5 * w).backward()
    return first, float(w.grad)


def micrograd() -> Pair:
    from micrograd.engine import Value

    w = Value(2.0)
    (3 * w).backward()
    assert w.grad is not None
    first = float(w.grad)
    (5 * w).backward()
    return first, float(w.grad)


def jax() -> Pair:
    import jax as framework

    return (
        float(framework.grad(lambda w: 3 * w)(2.0)),
        float(framework.grad(lambda w: 5 * w)(2.0)),
    )


def tensorflow() -> Pair:
    import tensorflow as framework

    w = framework.Variable(2.0)
    answers = []
    for factor in (3.0, 5.0):
        with framework.GradientTape() as tape:
            loss = factor * w
        answers.append(float(tape.gradient(loss, w)))
    return answers[0], answers[1]


def autograd() -> Pair:
    from autograd import grad

    return float(grad(lambda w: 3 * w)(2.0)), float(grad(lambda w: 5 * w)(2.0))


def mlx() -> Pair:
    import mlx.core as framework

    w = framework.array(2.0)
    return (
        float(framework.grad(lambda v: 3 * v)(w)),
        float(framework.grad(lambda v: 5 * v)(w)),
    )


FRAMEWORKS: dict[str, tuple[str, Callable[[], Pair]]] = {
    "PyTorch": ("torch", pytorch),
    "tinygrad": ("tinygrad", tinygrad),
    "PaddlePaddle": ("paddlepaddle", paddle),
    "micrograd": ("micrograd", micrograd),
    "JAX": ("jax", jax),
    "TensorFlow": ("tensorflow_cpu", tensorflow),
    "autograd": ("autograd", autograd),
    "MLX": ("mlx", mlx),
}


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for name, (distribution, ask) in FRAMEWORKS.items():
        try:
            version = importlib.metadata.version(distribution).split("+")[0]
            first, second = ask()
        except Exception as error:  # not installed, or not for this machine
            print(f"{name}: not asked ({type(error).__name__}: {error})")
            continue
        kept[name] = {"version": version, "first": first, "second": second}
        print(f"{name} {version}: {first:g}, then {second:g}")
    ordered = {name: kept[name] for name in FRAMEWORKS if name in kept}
    RESULTS.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
