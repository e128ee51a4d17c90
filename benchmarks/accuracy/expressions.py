"""Evaluate expressions of the brute-force interpreter, and record what they do to gradients.

Numbers, strings, lists and comparisons of known values are computed as Python does.
Anything else is a `Thing`; an operation on the same operands gives the same `Thing`, so
an unknown condition keeps its truth exactly as long as its operands stay what they were.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import Any

from benchmarks.accuracy.arithmetic import (
    BINARY,
    COMPARE,
    LONGEST_VALUE,
    NUMBERS,
    is_small,
    key_of,
)
from benchmarks.accuracy.training_code import is_optimizer_step
from benchmarks.accuracy.values import (
    ClassValue,
    FunctionValue,
    Scope,
    Thing,
    held_by,
    made_of,
    things_in,
)

# Methods that return their own object, so `net = net.to(device)` is the same network.
_SAME = {"to", "cuda", "cpu", "train", "eval", "half", "float", "double", "requires_grad_"}
_PARAMETERS = {"parameters", "named_parameters"}
# Methods that hand out the same object each time they are asked.
_STABLE = {"optimizers", "rpc_sync", "rpc_async", "local_value", "get_optimizer"}
_PREPARE = {"prepare", "setup", "setup_optimizers", "setup_module"}


class Expressions(ABC):
    """The half of the interpreter that evaluates; `Execution` adds statements."""

    symbols: dict[Any, Thing]
    keep: list[Any]
    detached: int
    world: Thing

    def symbol(self, key: Any, label: str, operands: Any) -> Thing:
        """Return the one Thing for this operation on these operands."""
        if key not in self.symbols:
            made = Thing(label, None, made_of(operands), held_by(operands))
            self.spend(len(made.made_of) // 4)
            made.scaler = next((t.scaler for t in things_in(operands) if t.scaler), None)
            self.symbols[key] = made
            self.keep.append(operands)  # a key holds ids, so the operands must live
        return self.symbols[key]

    def unknown(self, label: str, operands: Any = ()) -> Thing:
        made = Thing(label, None, made_of(operands), held_by(operands))
        self.spend(len(made.made_of) // 4)
        return made

    def evaluate(self, node: ast.expr | None, scope: Scope) -> Any:
        if node is None:
            return None
        self.spend()
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            parts = [
                self.evaluate(child, scope)
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.expr)
            ]
            return self.unknown(type(node).__name__, parts)
        return method(node, scope)

    def _constant(self, node: ast.Constant, scope: Scope) -> Any:
        return node.value

    def _name(self, node: ast.Name, scope: Scope) -> Any:
        if not scope.has(node.id):
            known = {"True": True, "False": False, "__name__": "__main__"}
            scope.top.names[node.id] = known.get(node.id, Thing(node.id, self.world))
            made = scope.top.names[node.id]
            if isinstance(made, Thing):
                made.parent = None  # old as the world, but no part of anything
        return scope.get(node.id)

    def _tuple(self, node: ast.Tuple, scope: Scope) -> Any:
        return tuple(self._elements(node.elts, scope))

    def _list(self, node: ast.List, scope: Scope) -> Any:
        return self._elements(node.elts, scope)

    def _elements(self, nodes: list[ast.expr], scope: Scope) -> list[Any]:
        values: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = self.evaluate(node.value, scope)
                values.extend(inner if isinstance(inner, list | tuple) else [inner])
            else:
                values.append(self.evaluate(node, scope))
        return values

    def _dict(self, node: ast.Dict, scope: Scope) -> Any:
        made: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            name = self.evaluate(key, scope) if key is not None else object()
            made[name if isinstance(name, str | int) else id(name)] = self.evaluate(value, scope)
        return made

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Any:
        value = self.evaluate(node.value, scope)
        scope.set(node.target.id, value)
        return value

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Any:
        return FunctionValue(node, scope)

    def _await(self, node: ast.Await, scope: Scope) -> Any:
        return self.evaluate(node.value, scope)

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Any:
        chosen = node.body if self.truth(self.evaluate(node.test, scope)) else node.orelse
        return self.evaluate(chosen, scope)

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Any:
        stops = isinstance(node.op, ast.Or)
        value: Any = None
        for part in node.values:
            value = self.evaluate(part, scope)
            if self.truth(value) is stops:
                return value
        return value

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Any:
        value = self.evaluate(node.operand, scope)
        if isinstance(node.op, ast.Not):
            return not self.truth(value)
        if isinstance(value, int | float):
            return -value if isinstance(node.op, ast.USub) else value
        return self.symbol(("u", type(node.op), id(value)), "unary", [value])

    def _binop(self, node: ast.BinOp, scope: Scope) -> Any:
        left, right = self.evaluate(node.left, scope), self.evaluate(node.right, scope)
        return self.operate(type(node.op), left, right)

    def operate(self, kind: type[ast.AST], left: Any, right: Any) -> Any:
        """Compute a binary operation where both sides are known."""
        plain = (int, float, str, list, tuple)
        if kind in BINARY and isinstance(left, plain) and isinstance(right, plain):
            small = is_small(kind, left, right)
            try:
                if small:
                    return BINARY[kind](left, right)
            except (TypeError, ValueError, ArithmeticError):
                pass
        return self.symbol(("b", kind, key_of(left), key_of(right)), "value", [left, right])

    def _compare(self, node: ast.Compare, scope: Scope) -> Any:
        left = self.evaluate(node.left, scope)
        result: Any = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node, scope)
            result = self._compare_one(type(op), left, right)
            if not isinstance(result, Thing) and not result:
                return False
            left = right
        return result

    def _compare_one(self, kind: type[ast.AST], left: Any, right: Any) -> Any:
        unknown = isinstance(left, Thing) or isinstance(right, Thing)
        if kind in (ast.Is, ast.IsNot) and (left is None or right is None):
            return COMPARE[kind](left, right)
        if unknown and kind in (ast.Is, ast.IsNot) and left is right:
            return kind is ast.Is
        if not unknown:
            try:
                return bool(COMPARE[kind](left, right))
            except TypeError:
                pass
        positive = {ast.NotEq: ast.Eq, ast.NotIn: ast.In, ast.IsNot: ast.Is}
        if kind in positive:
            return not self.truth(self._compare_one(positive[kind], left, right))
        return self.symbol(("c", kind, key_of(left), key_of(right)), "test", [left, right])

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        return self.attribute(self.evaluate(node.value, scope), node.attr)

    def attribute(self, value: Any, name: str) -> Any:
        if isinstance(value, Thing):
            if name not in value.parts and value.cls is not None:
                found = value.cls.method(name)
                if found is not None:
                    return FunctionValue(found[1], found[0].scope, value)
            if name in ("data", "module"):  # wrapper and wrapped hold the same gradients
                return value.parts.get(name, value)
            return value.part(name, f".{name}")
        if isinstance(value, ClassValue) and name in value.methods:
            return FunctionValue(value.methods[name], value.scope)
        return self.symbol(("a", key_of(value), name), name, [value])

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        value, index = self.evaluate(node.value, scope), self.evaluate(node.slice, scope)
        ordered = isinstance(value, list | tuple) and isinstance(index, int)
        if ordered and -len(value) <= index < len(value):
            return value[index]
        if isinstance(value, dict) and isinstance(index, str | int) and index in value:
            return value[index]
        if isinstance(value, Thing):
            return value.part(("item", key_of(index)), "[]")
        return self.symbol(("i", key_of(value), key_of(index)), "item", [value])

    def _slice(self, node: ast.Slice, scope: Scope) -> Any:
        return ast.unparse(node)

    def _listcomp(self, node: Any, scope: Scope) -> Any:
        inner = Scope(scope)
        results: list[Any] = []

        def go(level: int) -> None:
            if level == len(node.generators):
                results.append(self.evaluate(getattr(node, "elt", None) or node.value, inner))
                return
            generator = node.generators[level]
            items, known = self.iterate(self.evaluate(generator.iter, inner), 2)
            known_all.append(known)
            for item in items:
                self.bind(generator.target, item, inner)
                tests = [self.evaluate(test, inner) for test in generator.ifs]
                if all(isinstance(t, Thing) or t for t in tests):
                    go(level + 1)

        known_all: list[bool] = []
        go(0)
        return results if all(known_all) else self.unknown("listcomp", results)

    _setcomp = _generatorexp = _dictcomp = _listcomp

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        receiver: Any = None
        if isinstance(node.func, ast.Attribute):
            receiver = self.evaluate(node.func.value, scope)
            name = node.func.attr
            if isinstance(receiver, list | dict):
                return self._container_call(receiver, name, node, scope)
            callee = self.attribute(receiver, name)
        else:
            callee = self.evaluate(node.func, scope)
            name = node.func.id if isinstance(node.func, ast.Name) else ""
        args = self._elements(node.args, scope)
        kwargs = {k.arg or "**": self.evaluate(k.value, scope) for k in node.keywords}
        if isinstance(callee, FunctionValue | ClassValue):
            return self.call(callee, args, kwargs)
        done = self._builtin(name, args) if receiver is None else None
        if done is not None:
            return done[0]
        return self._foreign(node, callee, receiver, name, args, kwargs)

    def _builtin(self, name: str, args: list[Any]) -> tuple[Any] | None:
        known = not any(isinstance(a, Thing) for a in args)
        if name == "range" and known and all(isinstance(a, int) for a in args) and args:
            return (range(*args),)
        if name in ("isinstance", "hasattr", "callable"):
            return (True,)
        if name == "len" and known and args and isinstance(args[0], list | tuple | dict | range):
            return (len(args[0]),)
        if name == "super":
            return (Thing("super"),)
        if name in NUMBERS and args and all(isinstance(a, int | float) for a in args):
            return (NUMBERS[name](*args),)
        listed = len(args) == 1 and isinstance(args[0], list | tuple | range)
        if name in ("list", "tuple", "reversed", "sorted", "iter") and listed:
            return (list(args[0][:LONGEST_VALUE]),)
        if name in ("tqdm", "trange") and args and isinstance(args[0], list | tuple | range):
            return (args[0],)
        if name == "enumerate" and args:
            return (("enumerate", args[0], args[1] if len(args) > 1 else 0),)
        if name == "zip" and args and all(isinstance(a, list | tuple) for a in args):
            return ([tuple(items) for items in zip(*args, strict=False)],)
        return None

    def _container_call(self, value: Any, name: str, node: ast.Call, scope: Scope) -> Any:
        args = self._elements(node.args, scope)
        if isinstance(value, list) and name == "append" and len(value) < 64:
            value.append(args[0])
            return None
        if isinstance(value, list) and name == "extend" and isinstance(args[0], list | tuple):
            value.extend(args[0])
            return None
        if isinstance(value, dict) and name in ("values", "keys", "items"):
            return list(getattr(value, name)())
        return self.unknown(name, [value, args])

    def _foreign(
        self,
        node: ast.Call,
        callee: Any,
        receiver: Any,
        name: str,
        args: list[Any],
        kwargs: dict[str, Any],
    ) -> Any:
        """Call something outside the program: record what it does, return a new Thing."""
        values = [*args, *kwargs.values()]
        if self.record(node, receiver, name, args, kwargs):
            return Thing(f"{name}()")
        if isinstance(receiver, Thing):
            if name in ("train", "eval", *_PARAMETERS):
                receiver.is_network = True
            if name in _SAME:
                return receiver
            if name in _PARAMETERS:
                return Thing("parameters", receiver, frozenset(), (receiver,))
            if name in _PREPARE and args:
                return args[0] if len(args) == 1 else tuple(args)
            if name in ("values", "items", "children", "modules"):
                return receiver
            if name in _STABLE and not args:
                return receiver.part(f"{name}()", f".{name}()")
            if name == "scale" and "scaler" in receiver.name.lower() and args:
                made = Thing("scaled", None, made_of(args))
                made.scaler = receiver
                return made
        if name in ("detach", "item", "deepcopy", "no_grad", "tolist", "numpy") or self.detached:
            return Thing(f"{name}()", None, frozenset(), held_by(values))
        inputs = frozenset(thing for thing in things_in(values) if not thing.imported)
        roots = made_of([receiver, *values]) | inputs
        if isinstance(callee, Thing) and not callee.imported:
            roots |= {callee}
        if isinstance(receiver, Thing) and not receiver.imported:
            roots |= {receiver}
        self.spend(len(roots) // 4)  # a value that is made of itself again and again grows
        return Thing(f"{name or 'call'}()", None, roots, held_by(values))

    def record(
        self, node: ast.Call, receiver: Any, name: str, args: list[Any], kwargs: dict[str, Any]
    ) -> bool:
        """Record the event this call is, if it is one."""
        line = node.lineno
        if name.startswith("clip_grad"):
            self.note("clip", line, [*args[:1], receiver])
            return True
        if not isinstance(receiver, Thing) or not isinstance(node.func, ast.Attribute):
            return False
        if name == "zero_grad":
            self.note("clear", line, [receiver])
        elif name in ("backward", "manual_backward"):
            self.note("backward", line, [receiver, *args])
        elif name == "unscale_" and args:
            self.note("unscale", line, args[:1])
        elif name == "update" and "scaler" in receiver.name.lower():
            self.note("update", line, [receiver])
        elif name == "zero_" and receiver.name.endswith(".grad"):
            self.note("clear", line, [receiver])
        elif name == "step" and is_optimizer_step(node, node.func.value):
            closure = next((a for a in [*args, *kwargs.values()] if callable_value(a)), None)
            if closure is not None:
                self.call(closure, [], {})
            scaled = "scaler" in receiver.name.lower() and args and isinstance(args[0], Thing)
            self.note("step", line, [args[0], receiver] if scaled else [receiver])
        else:
            return False
        return True

    @abstractmethod
    def spend(self, amount: int = 1) -> None:
        """Count what is done, and end a run that does too much."""

    @abstractmethod
    def truth(self, value: Any) -> bool:
        """Tell whether a value is true; of an unknown one, decide."""

    @abstractmethod
    def call(self, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Call a function or class of the program, and return what it gives."""

    @abstractmethod
    def note(self, kind: str, line: int, subjects: list[Any]) -> None:
        """Keep an event that touches gradients."""

    @abstractmethod
    def iterate(self, value: Any, count: int) -> tuple[list[Any], bool]:
        """Return the items a loop sees, and whether they are the real ones."""

    @abstractmethod
    def bind(self, target: ast.expr, value: Any, scope: Scope) -> None:
        """Assign a value to a name, an attribute, an item or several of them."""


def callable_value(value: Any) -> bool:
    return isinstance(value, FunctionValue)
