"""What we rely on in torch beyond its documentation: `engine` and `fsdp_facts` know the rest.

Each fact is pinned in `tests/runtime/test_torch_facts.py`, so that a new torch
fails there first, in plain words.
"""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

import torch
from torch import Tensor, overrides
from torch.autograd import graph as autograd_graph
from torch.utils import _python_dispatch
from torch.utils._device import DeviceContext

MOST_PEEKED = 4096  # values of one gradient
MOST_NODES = 50_000  # of a graph that is walked for its leaves

Roots = Any  # what the engine is given: tensors or graph edges

_LEAF_NODE = type(autograd_graph.get_gradient_edge(torch.zeros(1, requires_grad=True)).node)
_AS_DISABLED = "__dynamo_disable"  # where torch keeps a function's disabled form
_AFTER_STEP = "post_hook"  # a variable of the function around each step, once that is done
_BACKWARD_CODE: CodeType = torch.autograd.backward.__code__
_STEP_CODE = next(  # of the function that torch puts around the step of each class
    (
        each
        for each in torch.optim.Optimizer.profile_hook_step.__code__.co_consts
        if isinstance(each, CodeType)
    ),
    None,
)
ENGINE_CODE: CodeType = autograd_graph._engine_run_backward.__code__
ENGINE_ROOTS = ENGINE_CODE.co_varnames[0]  # what it calls the tensors that it begins at


def is_filling(frame: FrameType) -> bool:
    """Does this frame, which calls the engine, fill `.grad`? `autograd.grad` does not."""
    return frame.f_code is _BACKWARD_CODE


def torch_version() -> tuple[int, ...]:
    """Return torch's version as numbers: (2, 13)."""
    return tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])


def keep_out_of_graphs(*modules: str) -> Callable[[], None] | None:
    """Tell torch.compile not to trace into these modules of ours; return how to undo it.

    Without it, the step hooks would be traced, and guards on our counters would
    compile the user's code again and again. None: torch.compile is not loaded yet.
    """
    rules: Any = sys.modules.get("torch._dynamo.trace_rules")
    if rules is None or not hasattr(rules, "_recompile_re"):
        return None
    before, compile_all = len(rules.SKIP_DIRS), rules._recompile_re
    rules._recompile_re = int  # which does nothing: one pattern for all, not one for each
    try:
        for module in modules:
            rules.add(module)
    finally:
        rules._recompile_re = compile_all
    compile_all()
    added = rules.SKIP_DIRS[before:]

    def undo() -> None:
        for folder in added:
            if folder in rules.SKIP_DIRS:
                rules.SKIP_DIRS.remove(folder)
        rules._recompile_re()

    return undo


def disable(function: Any) -> None:
    """Let torch.compile leave a graph where this function is called, as for a disabled one."""
    vars(function).pop(_AS_DISABLED, None)  # copied from the function that it wraps
    function._torchdynamo_disable, function._torchdynamo_disable_msg = True, None


def as_disabled(function: Any) -> Any:
    """Return how torch's own wrapper calls a function that it disables, None if not yet known."""
    return vars(function).get(_AS_DISABLED)


def has_compiled() -> bool:
    """Has torch.compile compiled anything in this process?"""
    dynamo = sys.modules.get("torch._dynamo.utils")
    return dynamo is not None and bool(dynamo.counters["frames"])


def local_part(grad: Tensor) -> Tensor:
    """Return the tensor that holds the values: of a DTensor, the part on this rank."""
    local: Tensor = getattr(grad, "_local_tensor", grad)
    return local


def version_of(grad: Tensor) -> int:
    """Return a number that grows with each change in place.

    Of a DTensor sometimes the outer counter moves (a backward under tensor parallelism adds
    to it), sometimes only that of the part on this rank (FSDP2 writes there).
    """
    local = getattr(grad, "_local_tensor", None)
    return grad._version if local is None else grad._version + local._version


def is_sharded(tensor: Tensor) -> bool:
    """Is it a DTensor, whose own version counter does not say all?"""
    return hasattr(tensor, "_local_tensor")


def may_look_at_values() -> bool:
    """May values be read now? Not while a graph is captured, traced or transformed."""
    if torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack():
        return False
    return not (torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def norms(grads: Iterable[Tensor]) -> list[float]:
    """Return the norm of each gradient, in one device synchronisation per device."""
    by_device: dict[torch.device, list[tuple[int, Tensor]]] = {}
    found: dict[int, float] = {}
    with torch._C.DisableTorchFunction(), _unseen():
        for index, grad in enumerate(grads):
            part = local_part(grad).detach()
            if part.is_sparse:
                with warnings.catch_warnings():  # torch warns of sparse tensors as such
                    warnings.simplefilter("ignore")
                    part = part.coalesce()._values()
            if not _is_readable(part):
                found[index] = float("nan")  # present, of unknown size
                continue
            part = part if part.is_floating_point() or part.is_complex() else part.float()
            if type(part) is not Tensor:
                found[index] = _norm_of_a_subclass(part)
                continue
            by_device.setdefault(part.device, []).append((index, part))
        for entries in by_device.values():
            values = [_norm_of(part) for _, part in entries]
            for (index, _), value in zip(entries, torch.stack(values).tolist(), strict=True):
                found[index] = value
    return [found[index] for index in sorted(found)]


def _norm_of(part: Tensor) -> Tensor:
    """Return its norm, in twice the precision: squares of tiny values would be zero without it."""
    norm: Tensor
    if part.device.type == "mps":  # has no doubles
        norm = torch.linalg.vector_norm(part.float())
    elif part.is_complex():
        norm = torch.linalg.vector_norm(part, dtype=torch.complex128)
    else:
        wide = part if part.dtype in _WIDENED else part.float()
        norm = torch.linalg.vector_norm(wide, dtype=torch.float64)
    return norm


_WIDENED = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _norm_of_a_subclass(part: Tensor) -> float:
    """Return its norm, NaN if it has no values (a fake tensor) or does not give them away."""
    try:
        return float(torch.linalg.vector_norm(part).item())
    except Exception:  # whatever its author raises from there
        return float("nan")


def _unseen() -> contextlib.AbstractContextManager[object]:
    """Return what keeps our looks out of the user's graphs and of modes such as a flop counter."""
    return _without_modes() if has_modes() else torch.no_grad()


def has_modes() -> bool:
    """Is a dispatch mode on, which sees every operator?"""
    return bool(torch._C._len_torch_dispatch_stack())


def is_overheard() -> bool:
    """Does a mode of the user's hear of every function, and of reads of `.grad` too?"""
    if not torch._C._len_torch_function_stack():
        return False
    modes = overrides._get_current_function_mode_stack()
    return any(type(each) is not DeviceContext for each in modes)  # the default device's is torch's


@contextlib.contextmanager
def _without_modes() -> Iterator[None]:
    count = torch._C._len_torch_dispatch_stack()
    modes = [_python_dispatch._pop_mode() for _ in range(count)]
    try:
        with torch.no_grad():
            yield
    finally:
        for mode in reversed(modes):
            _python_dispatch._push_mode(mode)


def peek(grad: Tensor) -> bool | None:
    """Is any of its first values not zero? None: not in the host's memory."""
    if grad.device.type != "cpu" or type(grad) is not Tensor or not may_look_at_values():
        return None
    if not _is_readable(grad):
        return None
    with torch._C.DisableTorchFunction(), _unseen():
        if grad.numel() > MOST_PEEKED:
            grad = grad.detach().reshape(-1)[:MOST_PEEKED]
        return bool(grad.any())  # an answer that no graph remembers


def _is_readable(part: Tensor) -> bool:
    """Is there memory behind all of it? FSDP takes it from a tensor that stays."""
    if part.layout is not torch.strided or part.device.type == "meta":
        return False
    return not part.numel() or part.untyped_storage().nbytes() > 0


def leaves_of(roots: Roots) -> tuple[list[Tensor], int]:
    """Return the leaf tensors that a backward from `roots` can fill, and how many nodes it has."""
    leaves: dict[int, Tensor] = {}
    seen: set[Any] = set()
    waiting = [node for node in map(_node_of, roots) if node is not None]
    while waiting and len(seen) < MOST_NODES:
        node = waiting.pop()
        if type(node) is _LEAF_NODE:
            leaf: Tensor = node.variable  # type: ignore[attr-defined]
            leaves[id(leaf)] = leaf
        elif node not in seen:
            seen.add(node)
            waiting += [each for each, _ in node.next_functions if each is not None]
    return list(leaves.values()), len(seen) + len(leaves)


def _node_of(root: Any) -> Any:
    node = getattr(root, "grad_fn", None)
    if node is None and isinstance(root, Tensor) and root.requires_grad and root.is_leaf:
        return autograd_graph.get_gradient_edge(root).node
    return node if node is not None else getattr(root, "node", None)


_FACTORS = frozenset({"DivBackward0", "MulBackward0"})
_PLAIN = frozenset({"AddBackward0", "SubBackward0", "ToCopyBackward0", "SumBackward0"})


def is_weighted(roots: Roots, given: bool, scaled: bool) -> bool:
    """Is the loss divided or weighted right under the root? A scaler's factor does not count."""
    if given:
        return True
    waiting = [node for node in map(_node_of, roots) if node is not None]
    skip = 1 if scaled else 0
    for _ in range(32):
        if not waiting:
            return False
        node = waiting.pop()
        name = node.name()
        if name in _FACTORS:
            if not skip:
                return True
            skip -= 1
            waiting.extend(function for function, _ in node.next_functions if function is not None)
        elif name in _PLAIN:
            waiting.extend(function for function, _ in node.next_functions if function is not None)
    return False


_MARK = "zerograd.scaler"


def mark_scaled(loss: Any, scaler: str) -> None:
    """Leave a note on the graph that this loss carries the factor of `scaler`."""
    if isinstance(loss, Tensor):
        if loss.grad_fn is not None:
            notes: Any = loss.grad_fn.metadata  # typed as a method, a dictionary in truth
            notes[_MARK] = scaler
    elif isinstance(loss, (list, tuple)):
        for each in loss:
            mark_scaled(each, scaler)


def scaler_of(roots: Roots, *, most: int = 64) -> str:
    """Return the scaler whose factor a loss carries, "" for none; looks at the nearest nodes."""
    waiting = deque(node for node in map(_node_of, roots) if node is not None)
    seen: set[Any] = set()
    while waiting and len(seen) < most:
        node = waiting.popleft()
        if node not in seen:
            seen.add(node)
            mark = node.metadata.get(_MARK)
            if mark is not None:
                return str(mark)
            waiting += [each for each, _ in node.next_functions if each is not None]
    return ""


def is_in_step_hook(optimizer: Any) -> bool:
    """Is a hook running that comes before this optimizer's step?"""
    step = type(optimizer).step
    hooked = getattr(step, "__code__", None)
    body = getattr(getattr(step, "__wrapped__", None), "__code__", None)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_back is not None:
        around = frame.f_back
        if around.f_code is hooked:
            return frame.f_code is not body and _AFTER_STEP not in around.f_locals
        frame = around
    return False


def steps_around(number: int) -> int:
    """Return how many steps of one optimizer, given by its id, are under way in this thread.

    A step that calls its base class's has torch's hooks around both.
    """
    count = 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _STEP_CODE and id(frame.f_locals.get("self")) == number:
            count += 1
        frame = frame.f_back
    return count


def has_step_hooks(optimizer: Any) -> bool:
    """Has the user given this optimizer hooks that run after ours and before its step?"""
    return bool(getattr(optimizer, "_optimizer_step_pre_hooks", None))


def is_under_join(model: Any) -> bool:
    """Has `Join` taken this model in, so that some ranks may have less data than others?"""
    return bool(getattr(getattr(model, "_join_config", None), "enable", False))


def is_joining() -> bool:
    """Does `Join` act here for the ranks that still have data? Then this rank has no more."""
    join = getattr(sys.modules.get("torch.distributed.algorithms.join"), "Join", None)
    leaving = getattr(getattr(join, "__exit__", None), "__code__", None)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and leaving is not None:
        if frame.f_code is leaving:
            return True
        frame = frame.f_back
    return False


def exchanges() -> int | None:
    """Return a number that grows with each collective of this process; None: nothing counts them.

    Every backend counts its own, so that ranks which lose step can be told. To ask sends nothing.
    """
    try:
        groups: Any = torch.distributed.distributed_c10d
        backends = {  # one may serve several kinds of devices
            group._get_backend(device)
            for group in list(groups._world.pg_map)
            for device in group._device_types
        }
        return sum(int(backend._get_sequence_number_for_group()) for backend in backends)
    except (AttributeError, RuntimeError):
        return None
