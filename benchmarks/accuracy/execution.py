"""Execute the statements of one program, once, under one list of decisions.

Calls of the program's own functions and classes are really made; what is not part of the
program is a `Thing`. What touches gradients is noted as it happens.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from benchmarks.accuracy.expressions import Expressions
from benchmarks.accuracy.relevance import Relevance, is_for_heirs
from benchmarks.accuracy.values import ClassValue, FunctionValue, Scope, Thing, now

ROUNDS = 3
CALL_DEPTH = 8
MOST_STEPS = 100_000  # statements and expressions of one run
_EXITS = {"sys.exit", "exit", "quit", "os._exit", "os.abort"}


class Break(Exception):
    pass


class Continue(Exception):
    pass


class Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class Stop(Exception):
    """This path ends here: the program raised, or it runs too long."""


@dataclass(slots=True)
class Raw:
    """An event before it is known which parameters it touched."""

    kind: str
    line: int
    subjects: list[Any]
    at: int = 0  # things born later did not exist yet


class Execution(Expressions):
    """One run of one program under one list of decisions."""

    def __init__(self, tree: ast.Module, relevance: Relevance, decisions: list[bool]) -> None:
        self.tree = tree
        self.relevance = relevance
        self.decisions = decisions
        self.taken = 0
        self.truths: dict[int, bool] = {}
        self.symbols = {}
        self.keep = []
        self.detached = 0
        self.raw: list[Raw] = []
        self.steps = 0
        self.depth = 0
        self.muted = False
        self.world = Thing("world")

    # Decisions

    def decide(self) -> bool:
        if self.taken == len(self.decisions):
            self.decisions.append(True)
        self.taken += 1
        return self.decisions[self.taken - 1]

    def truth(self, value: Any) -> bool:
        if not isinstance(value, Thing):
            try:
                return bool(value)
            except Exception:
                return True
        if id(value) not in self.truths:
            self.truths[id(value)] = self.decide()
            self.keep.append(value)
        return self.truths[id(value)]

    def spend(self, amount: int = 1) -> None:
        """Count what is done, and end a run that does too much: by count, the same everywhere."""
        self.steps += amount
        if self.steps > MOST_STEPS:
            raise Stop("too long")

    def note(self, kind: str, line: int, subjects: list[Any]) -> None:
        if not self.muted:
            self.raw.append(Raw(kind, line, subjects, now()))

    # Statements

    def run_block(self, block: list[ast.stmt], scope: Scope) -> None:
        for statement in block:
            self.run(statement, scope)

    def run(self, node: ast.stmt, scope: Scope) -> None:
        self.spend()
        compound = isinstance(node, ast.If | ast.For | ast.While | ast.Try | ast.Match)
        if compound and not self.relevance.matters(node):
            self._forget(node, scope)
            return
        method = getattr(self, f"do_{type(node).__name__.lower()}", None)
        if method is not None:
            method(node, scope)

    def _forget(self, node: ast.stmt, scope: Scope) -> None:
        """Pass over a statement that touches no gradient: what it assigns is unknown after."""
        for name in self.relevance.stored(node):
            old = scope.get(name)
            network = isinstance(old, Thing) and name in self.relevance.receivers
            if not network:
                scope.set(name, self.unknown(name, [old]))

    def do_expr(self, node: ast.Expr, scope: Scope) -> None:
        value = node.value
        names = ("zero_grad", "step", "backward")
        if isinstance(value, ast.Attribute) and value.attr in names:
            # An uncalled method counts as called; the missing call is its own fault.
            self.note("uncalled", node.lineno, [])
            value = ast.copy_location(ast.Call(func=value, args=[], keywords=[]), value)
        self.evaluate(value, scope)
        if isinstance(value, ast.Call) and ast.unparse(value.func) in _EXITS:
            raise Stop("exited")

    def do_assign(self, node: ast.Assign, scope: Scope) -> None:
        value = self.evaluate(node.value, scope)
        for target in node.targets:
            self.bind(target, value, scope)

    def do_annassign(self, node: ast.AnnAssign, scope: Scope) -> None:
        if node.value is not None:
            self.bind(node.target, self.evaluate(node.value, scope), scope)

    def do_augassign(self, node: ast.AugAssign, scope: Scope) -> None:
        read = ast.copy_location(ast.parse(ast.unparse(node.target), mode="eval").body, node)
        old = self.evaluate(read, scope)
        new = self.operate(type(node.op), old, self.evaluate(node.value, scope))
        if not (isinstance(node.target, ast.Attribute) and node.target.attr == "grad"):
            self.bind(node.target, new, scope)

    def bind(self, target: ast.expr, value: Any, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            scope.set(target.id, value)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, value, scope)
        elif isinstance(target, ast.Tuple | ast.List):
            for index, part in enumerate(target.elts):
                if isinstance(value, list | tuple):
                    item = value[index] if index < len(value) else Thing("item")
                elif isinstance(value, Thing):
                    item = value.part(("item", (int, index)), f"[{index}]")
                else:
                    item = Thing("item")
                self.bind(part, item, scope)
        elif isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value, scope)
            if target.attr == "grad" and isinstance(owner, Thing):
                self.note("clear" if value is None else "assign", target.lineno, [owner])
            elif isinstance(owner, Thing):
                owner.parts[target.attr] = value
        elif isinstance(target, ast.Subscript):
            owner = self.evaluate(target.value, scope)
            key = self.evaluate(target.slice, scope)
            if isinstance(owner, dict) and isinstance(key, str | int):
                owner[key] = value

    def do_if(self, node: ast.If, scope: Scope) -> None:
        taken = self.truth(self.evaluate(node.test, scope))
        self.run_block(node.body if taken else node.orelse, scope)

    def do_match(self, node: ast.Match, scope: Scope) -> None:
        self.evaluate(node.subject, scope)
        for case in node.cases:
            if self.decide():
                self.run_block(case.body, scope)
                return

    def iterate(self, value: Any, count: int) -> tuple[list[Any], bool]:
        """Return the items a loop sees, and whether they are the real ones."""
        if isinstance(value, tuple) and len(value) == 3 and value[0] == "enumerate":
            items, known = self.iterate(value[1], count)
            start = value[2] if isinstance(value[2], int) else 0
            return [(start + n, item) for n, item in enumerate(items)], known
        if isinstance(value, range):
            return list(value[: max(count, 2)]), True  # sliced first: it may be astronomic
        if isinstance(value, list | tuple):
            return list(value[:16]), True
        if isinstance(value, dict):
            return list(value)[:16], True
        if isinstance(value, Thing):
            if value.holds or "opt" in value.name.lower():
                return [value.part(("element", n), f"[{n}]") for n in range(2)], False
            return [Thing(f"{value.name}#{n}", None, value.made_of) for n in range(count)], False
        return [Thing("item") for _ in range(count)], False

    def do_for(self, node: ast.For, scope: Scope) -> None:
        rounds = self.relevance.rounds(node, scope)
        items, _ = self.iterate(self.evaluate(node.iter, scope), rounds)
        # A buffer that is empty when it is made is not when a method trains on it: a loop that
        # matters is taken to run.
        for item in items or self.iterate(Thing("item"), rounds)[0]:
            self.bind(node.target, item, scope)
            try:
                self.run_block(node.body, scope)
            except Break:
                return
            except Continue:
                continue
        self.run_block(node.orelse, scope)

    def do_while(self, node: ast.While, scope: Scope) -> None:
        rounds = self.relevance.rounds(node, scope)
        for _ in range(rounds):
            test = self.evaluate(node.test, scope)
            # An unknown `while` runs its rounds: a loop is taken to run at least thrice.
            if not isinstance(test, Thing) and not test:
                break
            try:
                self.run_block(node.body, scope)
            except Break:
                return
            except Continue:
                continue
        self.run_block(node.orelse, scope)

    def do_with(self, node: ast.With, scope: Scope) -> None:
        quiet = 0
        for item in node.items:
            text = ast.unparse(item.context_expr)
            quiet += "no_grad" in text or "inference_mode" in text
            value = self.evaluate(item.context_expr, scope)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value, scope)
        self.detached += quiet
        try:
            self.run_block(node.body, scope)
        finally:
            self.detached -= quiet

    do_asyncwith = do_with
    do_asyncfor = do_for

    def do_try(self, node: ast.Try, scope: Scope) -> None:
        try:
            self.run_block(node.body, scope)
            self.run_block(node.orelse, scope)
        finally:
            self.run_block(node.finalbody, scope)

    def do_break(self, node: ast.Break, scope: Scope) -> None:
        raise Break

    def do_continue(self, node: ast.Continue, scope: Scope) -> None:
        raise Continue

    def do_return(self, node: ast.Return, scope: Scope) -> None:
        raise Return(self.evaluate(node.value, scope))

    def do_raise(self, node: ast.Raise, scope: Scope) -> None:
        raise Stop("raised")

    def do_functiondef(self, node: ast.FunctionDef, scope: Scope) -> None:
        scope.set(node.name, FunctionValue(node, scope))

    do_asyncfunctiondef = do_functiondef

    def do_classdef(self, node: ast.ClassDef, scope: Scope) -> None:
        scope.set(node.name, ClassValue(node, scope))

    def do_global(self, node: ast.Global, scope: Scope) -> None:
        for name in node.names:
            scope.elsewhere[name] = scope.top

    def do_nonlocal(self, node: ast.Nonlocal, scope: Scope) -> None:
        for name in node.names:
            outer = scope.outer
            while outer is not None and name not in outer.names:
                outer = outer.outer
            scope.elsewhere[name] = outer or scope.top

    def do_import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            name = (alias.asname or alias.name).split(".")[0]
            thing = Thing(name)
            thing.imported = True
            scope.set(name, thing)

    do_importfrom = do_import

    # Calls

    def call(self, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if isinstance(callee, ClassValue):
            return self.instance(callee, args, kwargs)
        if self.depth >= CALL_DEPTH:
            return self.unknown("deep", args)
        if is_for_heirs(callee.node):
            return self.unknown("abstract", [callee.bound, *args, *kwargs.values()])
        scope = Scope(callee.scope)
        self._bind_arguments(callee, args, kwargs, scope)
        if isinstance(callee.node, ast.Lambda):
            return self.evaluate(callee.node.body, scope)
        self.depth += 1
        try:
            self.run_block(callee.node.body, scope)
        except Return as done:
            return done.value
        finally:
            self.depth -= 1
        return None

    def instance(self, cls: ClassValue, args: list[Any], kwargs: dict[str, Any]) -> Thing:
        made = Thing(cls.node.name)
        made.cls = cls
        found = cls.method("__init__")
        if found is not None:
            self.call(FunctionValue(found[1], found[0].scope, made), args, kwargs)
        return made

    def _bind_arguments(
        self, callee: FunctionValue, args: list[Any], kwargs: dict[str, Any], scope: Scope
    ) -> None:
        spec = callee.node.args
        names = [a.arg for a in [*spec.posonlyargs, *spec.args]]
        given = [callee.bound, *args] if callee.bound is not None else list(args)
        first_default = len(names) - len(spec.defaults)
        for index, name in enumerate(names):
            if index < len(given):
                scope.set(name, given[index])
            elif name in kwargs:
                scope.set(name, kwargs[name])
            elif index >= first_default:
                default = spec.defaults[index - first_default]
                scope.set(name, self.evaluate(default, callee.scope))
            else:
                scope.set(name, Thing(name))
        if spec.vararg is not None:
            scope.set(spec.vararg.arg, tuple(given[len(names) :]))
        for only, default_node in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            value = kwargs.get(only.arg)
            if only.arg not in kwargs and default_node is not None:
                value = self.evaluate(default_node, callee.scope)
            scope.set(only.arg, value)
        if spec.kwarg is not None:
            scope.set(spec.kwarg.arg, Thing(spec.kwarg.arg))

    # Whole runs

    def run_root(self, chain: list[ast.AST]) -> None:
        """Run the module, or its definitions and then one function of it three times."""
        scope = Scope()
        if not chain:
            self.run_block(self.tree.body, scope)
            return
        self.muted = True
        wanted = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)
        for statement in self.tree.body:
            if isinstance(statement, wanted):
                self.run(statement, scope)
        bound: Thing | None = None
        for node in chain[:-1]:
            if isinstance(node, ast.ClassDef):
                try:
                    bound = self.instance(ClassValue(node, scope), [], {})
                except (Return, Break, Continue):
                    bound = Thing("self")
        target = chain[-1]
        assert isinstance(target, ast.FunctionDef | ast.AsyncFunctionDef)
        function = FunctionValue(target, scope, bound)
        args = self._root_arguments(target, skip_first=bound is not None)
        self.muted = False
        self.depth = 0
        for _ in range(ROUNDS):
            self.call(function, args, {})

    def _root_arguments(self, node: Any, skip_first: bool) -> list[Any]:
        """Return unknown arguments; one that defaults to None is given, or left, by decision."""
        names = [*node.args.posonlyargs, *node.args.args]
        none_from = len(names) - len(node.args.defaults)
        args: list[Any] = []
        for index, name in enumerate(names):
            value: Any = Thing(name.arg)
            if index >= none_from:
                default = node.args.defaults[index - none_from]
                if isinstance(default, ast.Constant) and default.value is None:
                    value = value if self.decide() else None
                elif isinstance(default, ast.Constant) and isinstance(default.value, int):
                    value = Thing(name.arg) if isinstance(default.value, bool) else default.value
            args.append(value)
        return args[1:] if skip_first else args
