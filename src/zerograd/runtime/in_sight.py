"""The code that a training loop has in sight: does any of it use what `.grad` holds?

A leaf of no optimizer's that changes is updated by hand only where somebody reads its gradient. A
target network is moved too, and so is an average of the weights, by a loss that may well fill them.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, FunctionType, ModuleType

from torch.optim import Optimizer

from zerograd.runtime.call_site import kind_of_is_machinery, kind_of_is_user
from zerograd.runtime.hand_work import parsed
from zerograd.runtime.written import is_grad

MOST_FILES = 8192
MOST_NAMES = 4096  # of a module, that are looked through
MEASURES = frozenset(
    {
        *("norm", "vector_norm", "item", "tolist", "numpy", "numel", "size", "dim", "isnan"),
        *("isinf", "isfinite", "any", "all", "allclose", "equal", "print", "len", "isinstance"),
        *("add_histogram", "add_scalar", "assert_close", "write", "info", "debug", "register_hook"),
    }
)


def uses_gradients() -> bool:
    """Is `.grad` read around the call that goes on, other than to measure, test or change it?"""
    return any(map(_uses_gradients, files()))


def is_read_by(code: CodeType) -> bool:
    """Does a function itself read `.grad` so, and is it no method of torch's kind of optimizers?"""
    path, line = code.co_filename, code.co_firstlineno
    if ".grad" not in "".join(linecache.getlines(path)):
        return False
    known = optimizers_in(path)
    waiting: list[ast.AST] = [parsed(path)]
    for node in waiting:  # grows as it goes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and line == min(
            each.lineno for each in (node, *node.decorator_list)
        ):
            return _reads(node, known)
        if not (isinstance(node, ast.ClassDef) and node.name in known):
            waiting += ast.iter_child_nodes(node)
    return False


def files() -> Iterator[str]:
    """Yield the files that a loop has in sight.

    Those on the way here, the user's files that these name, and those name in turn, and the
    libraries' files that one of them names. What else is loaded, another project's module say, is
    no code of this loop.
    """
    seen: set[str] = set()
    waiting: list[dict[str, object]] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if kind_of_is_user(path) and path not in seen:
            seen.add(path)
            waiting.append(frame.f_globals)
            yield path
        frame = frame.f_back
    for names in waiting:  # grows as it goes
        for path, others in _named(names):
            if path and path not in seen and not kind_of_is_machinery(path):
                seen.add(path)
                if kind_of_is_user(path):
                    waiting.append(others)
                yield path


def _named(variables: dict[str, object]) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield files and variables of the modules, functions and classes that are named there."""
    for value in list(variables.values())[:MOST_NAMES]:
        kind = type(value)  # and not what the value says of itself, which may be code
        if kind is FunctionType:
            yield value.__code__.co_filename, value.__globals__  # type: ignore[attr-defined]
        of_module = kind is FunctionType or isinstance(value, type)  # under a decorator too
        module = sys.modules.get(str(value.__module__)) if of_module else value
        if type(module) is ModuleType:
            yield vars(module).get("__file__") or "", vars(module)


_answers: dict[tuple[str, int], bool] = {}


def _uses_gradients(path: str) -> bool:
    lines = linecache.getlines(path)
    known = _answers.get((path, len(lines)))  # a cell that is written anew is another one
    if known is None:
        text = "".join(lines)
        known = ".grad" in text and _says_so(text, path)
        if len(_answers) >= MOST_FILES:
            _answers.clear()
        _answers[path, len(lines)] = known
    return known


def _says_so(text: str, path: str) -> bool:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return True  # a cell with magics, say
    return _reads(tree, optimizers_in(path))


def optimizers_in(path: str) -> set[str]:
    """Return the names of torch's kind of optimizers in a file: what they use has an owner."""
    kinds: list[type] = [Optimizer]
    for kind in kinds:  # grows as it goes
        kinds += kind.__subclasses__()
    files = ((getattr(sys.modules.get(each.__module__), "__file__", ""), each) for each in kinds)
    return {each.__name__ for file, each in files if file == path}


def _reads(node: ast.AST, optimizers: set[str]) -> bool:
    if is_grad(node):
        return isinstance(node.ctx, ast.Load)  # type: ignore[attr-defined]
    if isinstance(node, ast.Compare) or (
        isinstance(node, ast.ClassDef) and node.name in optimizers
    ):
        return False
    inside = list(ast.iter_child_nodes(node))
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        inside = [node.value]  # `p.grad.data = g` only changes it
    if isinstance(node, ast.BinOp):
        inside = [_without_numpy(each) for each in inside]  # `lr * w.grad.numpy()` is no measuring
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in MEASURES:
            return False
        if name.endswith("_") and _is_itself(node.func):
            inside.remove(node.func)  # `p.grad.clamp_(-1, 1)`
    return any(_reads(each, optimizers) for each in inside)


def _without_numpy(node: ast.AST) -> ast.AST:
    function = node.func if isinstance(node, ast.Call) else None
    is_array = isinstance(function, ast.Attribute) and function.attr == "numpy"
    return function.value if is_array else node  # type: ignore[union-attr]


def _is_itself(node: ast.AST) -> bool:
    """Is it a method of some `.grad` itself, or of its `.data`?"""
    of = node.value if isinstance(node, ast.Attribute) else node
    return is_grad(of.value if isinstance(of, ast.Attribute) and of.attr == "data" else of)
