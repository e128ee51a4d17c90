"""What the user's program sends from rank to rank by itself, as its source tells.

Who averages weights every thousand steps, or adds up gradients in a loop of their own, does without
DistributedDataParallel's exchange on purpose. Within a few windows nothing may show of that, but
the source names it. It is read only on a suspicion.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Iterator

from zerograd.runtime.call_site import kind_of_is_user
from zerograd.runtime.hand_work import parsed
from zerograd.runtime.in_sight import files

MOST_FILES = 4096

_LIBRARIES = r"local_?sgd|diloco|gossip|fedavg|horovod|bagua|byteps|hivemind|torchft"
_WHAT = r"(?:param|grad|model|weight)"
_DONE = r"(?:avg|averag|sync|reduc|exchang|aggregat|merg|combin|mean)"
_NAMES = re.compile(
    rf"{_LIBRARIES}|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|isend|irecv|p2p"
    rf"|averager|{_DONE}(?:[a-z]*_)??(?:all_?)?{_WHAT}|{_WHAT}[a-z]*_?{_DONE}"
    r"|(?<!\w)(?:hvd|rpc|reduce|send|recv)(?!\w)",
    re.IGNORECASE,
)
_LOADED = re.compile(_LIBRARIES, re.IGNORECASE)
_HARMLESS = frozenset(
    {
        *("require_backward_grad_sync", "sync_gradients"),  # when DDP and Accelerate do it
        *("broadcast_buffers", "broadcast_tensors", "broadcast_to"),
    }
)
_MEASURES = re.compile(r"loss|accuracy|metric|correct", re.IGNORECASE)
_MADE_OF_NUMBERS = frozenset({"tensor", "as_tensor"})


def named() -> int | None:
    """Count the calls that the program around this call exchanges measures by, a loss for the log.

    None: it names something else that may be an exchange.
    """
    if any(_LOADED.search(name) for name in list(sys.modules) if not name.startswith("torch.")):
        return None
    count = 0
    for number, path in enumerate(dict.fromkeys(_files())):
        found = _in_file(path) if number < MOST_FILES else None
        if found is None:
            return None
        count += found
    return count


def _files() -> Iterator[str]:
    """Yield the user's files: those in sight, and what else is loaded, for functions import too."""
    yield from filter(kind_of_is_user, files())
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and path.endswith(".py") and kind_of_is_user(path):
            yield path


def _in_file(path: str) -> int | None:
    if not _NAMES.search("".join(linecache.getlines(path))):
        return 0
    tree = parsed(path)
    return measures_in(tree) if tree.body else None  # a cell with magics, say


def measures_in(tree: ast.AST) -> int | None:
    """Count the calls that exchange measures; None where a file names other exchanges too.

    >>> measures_in(ast.parse("dist.all_reduce(loss)"))
    1
    >>> measures_in(ast.parse("dist.all_reduce(p.grad)")) is None
    True
    """
    count = 0
    scopes: list[ast.AST] = [tree]
    for scope in scopes:  # grows as it goes
        nodes, inner = _inside(scope)
        scopes += inner
        numbers = {
            target.id
            for node in nodes
            if isinstance(node, ast.Assign) and _is_made_of_numbers(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        measured = {
            node.func
            for node in nodes
            if isinstance(node, ast.Call) and node.args and _is_measure(node.args[0], numbers)
        }
        named = [node for node in nodes if _is_named(node)]
        if not measured.issuperset(named):
            return None
        count += len(named)
    return count


def _inside(scope: ast.AST) -> tuple[list[ast.AST], list[ast.AST]]:
    """Return what stands in a scope, and the functions in it, which are scopes of their own."""
    nodes: list[ast.AST] = []
    inner: list[ast.AST] = []
    waiting = list(ast.iter_child_nodes(scope))
    for node in waiting:  # grows as it goes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner.append(node)
        else:
            nodes.append(node)
            waiting += ast.iter_child_nodes(node)
    return nodes, inner


def _is_named(node: ast.AST) -> bool:
    """Is it the name of an exchange? What is imported under its own name is named where used."""
    if isinstance(node, ast.alias):
        name = node.name.rpartition(".")[2] if node.asname else ""
    elif isinstance(node, (ast.Name, ast.Attribute)):
        name = _name_of(node)
    else:
        return False
    return bool(_NAMES.search(name)) and name not in _HARMLESS


def _is_measure(given: ast.expr, numbers: set[str]) -> bool:
    if _is_made_of_numbers(given):
        return True
    name = _name_of(given)
    return bool(_MEASURES.search(name)) or (isinstance(given, ast.Name) and name in numbers)


def _is_made_of_numbers(value: ast.expr) -> bool:
    """Is it `torch.tensor(x)`, moved to a device perhaps?"""
    while isinstance(value, ast.Call):
        if _name_of(value.func) in _MADE_OF_NUMBERS:
            return True
        value = value.func.value if isinstance(value.func, ast.Attribute) else value.func
    return False


def _name_of(node: ast.expr) -> str:
    """Return the last name of `a` or `b.a`, "" of anything else."""
    return str(getattr(node, "attr", getattr(node, "id", "")))
