"""One module of the project: its functions, classes and imports, found without running it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

from zerograd.static.engine.identity.values import External
from zerograd.static.engine.text.classes import ClassUnit, FunctionNode
from zerograd.static.engine.text.companions import companions
from zerograd.static.engine.text.leading import EVENT_WORDS, LeadingLines, documentation
from zerograd.static.engine.text.parts import parts_below
from zerograd.static.engine.text.places import Places, has_row
from zerograd.static.engine.text.receivers import Receivers
from zerograd.static.engine.text.stores import names_stored, statements_in
from zerograd.static.engine.text.tallied import Tallied
from zerograd.static.engine.text.used_up import UsedUp, makes_iterators, used_up
from zerograd.static.engine.text.words import CLIPS
from zerograd.static.engine.text.written import is_asked

if TYPE_CHECKING:
    from zerograd.static.source import Source

_FUNCTIONS = frozenset((ast.FunctionDef, ast.AsyncFunctionDef))
_LOOPS = frozenset((ast.For, ast.While))

_PLAINLY = re.compile(r"(?i)\b\w*loss\w*\.backward\(")
_CLEARING = re.compile(r"zero_grads?\(|clear_grads?\(|\.grad(\.data)?(\s*=\s*None|\.zero_)")


class Unit:
    """A module as the engine reads it."""

    __slots__ = (
        "_bases_of_training",
        "_changing",
        "_clears",
        "_companions",
        "_equalities",
        "_every_function",
        "_gradient_rows",
        "_in_buffers",
        "_leading",
        "_lines",
        "_loops",
        "_methods",
        "_names",
        "_parts",
        "_places",
        "_receivers",
        "_saying",
        "_statements",
        "_tallied",
        "_texts",
        "_used_up",
        "away",
        "classes",
        "functions",
        "imports",
        "missing",
        "source",
        "stars",
        "submodules",
    )

    def __init__(self, source: Source) -> None:
        self.source = source
        self.functions: dict[str, FunctionNode] = {}
        self.classes: dict[str, ClassUnit] = {}
        # local name -> (module, level, name in it or "" for the module itself)
        self.imports: dict[str, tuple[str, int, str]] = {}
        self.submodules: set[str] = set()  # `import package.module`
        self.stars: list[tuple[str, int]] = []
        self.missing: set[str] = set()  # names that were looked for at its top, in vain
        self.away: Callable[[], Iterable[str]] | None = None  # imported names that lead to events
        self._lines = source.lines
        self._texts: dict[int, str] = {}
        self._parts: dict[int, list[ast.AST]] = {}
        self._names: dict[int, tuple[str, ...]] = {}
        self._methods: dict[int, list[ast.Attribute]] = {}
        self._statements: list[ast.AST] | None = None
        self._saying: dict[str, list[FunctionNode]] = {}  # by a text, the functions that hold it
        self._every_function: list[FunctionNode] | None = None
        self._loops: list[ast.For | ast.While] | None = None
        self._equalities: dict[int, ast.Compare | None] = {}
        self._changing: frozenset[str] | None = None
        self._companions: dict[str, frozenset[str]] | None = None
        self._clears: bool | None = None
        self._in_buffers: bool | None = None
        self._leading: dict[tuple[str, ...], LeadingLines] = {}  # by the words of the events
        self._places: Places | None = None
        self._gradient_rows: list[int] | None = None
        self._receivers: Receivers | None = None
        self._used_up: dict[int, UsedUp] | None = None
        self._tallied: Tallied | None = None
        self._bases_of_training: frozenset[str] | None = None
        self._collect(source.tree.body)

    def close(self) -> None:
        """Let go of the tree."""
        for cls in self.classes.values():
            cls.close()
        for name in Unit.__slots__:
            delattr(self, name)

    def _collect(self, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, FunctionNode):
                self.functions[node.name] = node
            elif isinstance(node, ast.ClassDef):
                self.classes[node.name] = ClassUnit(node, self)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self.add_import(node)
            elif isinstance(node, (ast.If, ast.Try, ast.With)):
                for inner in ("body", "orelse", "finalbody"):
                    self._collect(getattr(node, inner, []))
                for handler in getattr(node, "handlers", []):
                    # a stand-in for what the try could not import
                    self._collect(
                        [
                            each
                            for each in handler.body
                            if getattr(each, "name", "") not in self.imports
                        ]
                    )

    def add_import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Note what an import binds, wherever it stands."""
        self.missing.clear()
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    self.imports.setdefault(alias.asname, (alias.name, 0, ""))
                else:
                    root, dot, _ = alias.name.partition(".")
                    self.imports.setdefault(root, (root, 0, ""))
                    if dot and root != "torch":
                        self.submodules.add(alias.name)
            return
        module = node.module or ""
        for alias in node.names:
            if alias.name == "*":
                self.stars.append((module, node.level))
            else:
                self.imports.setdefault(
                    alias.asname or alias.name, (module, node.level, alias.name)
                )

    def statements(self) -> list[ast.AST]:
        """Return all statements of the module, as `statements_in` gives them."""
        if self._statements is None:
            self._statements = statements_in(self.source.tree.body)
        return self._statements

    def has_gradients_in_buffers(self) -> bool:
        """Is some `.grad` made a part of other memory: `p.grad = flat[a:b].view_as(p)`?"""
        if self._in_buffers is None:
            self._in_buffers = ".grad = " in self.source.text and any(
                isinstance(each, ast.Assign)
                and any(getattr(target, "attr", "") == "grad" for target in each.targets)
                and any(_is_view(part) for part in parts_below(each.value))
                for each in self.statements()
            )
        return self._in_buffers

    def every_function(self) -> list[FunctionNode]:
        """Return all functions of the module, methods and those inside others too."""
        if self._every_function is None:
            functions = [each for each in self.statements() if type(each) in _FUNCTIONS]
            self._every_function = cast(list[FunctionNode], functions)
        return self._every_function

    def loops(self) -> list[ast.For | ast.While]:
        """Return all loops of the module, the outer ones first."""
        if self._loops is None:
            loops = [each for each in self.statements() if type(each) in _LOOPS]
            self._loops = cast(list[ast.For | ast.While], loops)
        return self._loops

    def functions_saying(self, text: str) -> list[FunctionNode]:
        """Return those of all functions in whose lines `text` occurs."""
        found = self._saying.get(text)
        if found is None:
            rows = self.places.rows(text)
            asked = self.every_function() if rows else ()
            found = [each for each in asked if has_row(rows, each.lineno, _last(each))]
            self._saying[text] = found
        return found

    def functions_around(self, line: int) -> list[FunctionNode]:
        """Return the functions that a line stands in, the outer ones first."""
        return [each for each in self.every_function() if each.lineno <= line <= _last(each)]

    @property
    def places(self) -> Places:
        """Where words stand in the file."""
        if self._places is None:
            self._places = Places(self._lines)
        return self._places

    def changes_attribute(self, name: str) -> bool:
        """Is an attribute of that name assigned outside a constructor?"""
        if self._changing is None:
            bodies = [
                method.body
                for cls in self.classes.values()
                for method in cls.methods.values()
                if method.name != "__init__"
            ]
            found = [names_stored(body) for body in bodies]
            self._changing = frozenset().union(*found) if found else frozenset()
        return f".{name}" in self._changing

    def companions(self, name: str) -> frozenset[str]:
        """Return the names that are None exactly where `name` is, `.name` for attributes."""
        if self._companions is None:
            self._companions = companions([self.source.tree])
        return self._companions.get(name, frozenset())

    def external(self, name: str) -> External:
        """Return what an import from outside the project stands for."""
        module, level, inner = self.imports[name]
        dotted = "." * level + module
        return External(f"{dotted}.{inner}" if inner else dotted)

    def text_of(self, node: ast.AST) -> str:
        """Return the lines of `node`, whole."""
        text = self._texts.get(id(node))
        if text is None:
            first: int = node.lineno  # type: ignore[attr-defined]
            last: int = node.end_lineno  # type: ignore[attr-defined]
            text = self._texts[id(node)] = "\n".join(self._lines[first - 1 : last])
        return text

    def equality(self, node: ast.Compare, name: str, number: int) -> ast.Compare | None:
        """Return `name == number` in the place of `node`, if the file asks that anywhere."""
        if id(node) not in self._equalities:
            same = None
            if is_asked(self.source.text, name, str(number)):
                constant = ast.copy_location(ast.Constant(number), node.comparators[0])
                same = ast.Compare(node.left, [ast.Eq()], [constant])
                ast.copy_location(same, node)
            self._equalities[id(node)] = same
        return self._equalities[id(node)]

    def parts_of(self, node: ast.AST) -> list[ast.AST]:
        """Return `node` and all expressions below it; a condition is looked at once a reading."""
        parts = self._parts.get(id(node))
        if parts is None:
            parts = self._parts[id(node)] = parts_below(node)
        return parts

    def methods_called(self, node: ast.AST) -> list[ast.Attribute]:
        """Return what is called as a method below a function or a class."""
        methods = self._methods.get(id(node))
        if methods is None:
            calls = [each for each in parts_below(node) if type(each) is ast.Call]
            methods = [each.func for each in calls if type(each.func) is ast.Attribute]
            self._methods[id(node)] = methods
        return methods

    def names_in(self, node: ast.AST) -> tuple[str, ...]:
        """Return the names in `node`, each as often as it is there."""
        names = self._names.get(id(node))
        if names is None:
            found = [each.id for each in self.parts_of(node) if type(each) is ast.Name]
            names = self._names[id(node)] = tuple(found)
        return names

    def mentions(self, node: ast.AST, text: str) -> bool:
        """Does `text` occur in the lines of `node`?"""
        first: int = node.lineno  # type: ignore[attr-defined]
        last: int = node.end_lineno  # type: ignore[attr-defined]
        return text in (self._lines[first - 1] if first == last else self.text_of(node))

    @property
    def receivers(self) -> Receivers:
        """Whose methods are called in the file."""
        if self._receivers is None:
            self._receivers = Receivers(self.places)
        return self._receivers

    @property
    def tallied(self) -> Tallied:
        """What the file counts and gathers."""
        if self._tallied is None:
            self._tallied = Tallied(self.places)
        return self._tallied

    @property
    def used_up(self) -> dict[int, UsedUp]:
        """By their ids, the clips and loops over parameters that find none any more."""
        if self._used_up is None:
            some = makes_iterators(self.source.text)
            self._used_up = used_up(self.source.tree, self.statements()) if some else {}
        return self._used_up

    @property
    def bases_of_training(self) -> frozenset[str]:
        """The names that the bases of classes which step begin with: `trainers` of `trainers.A`."""
        if self._bases_of_training is None:
            steps = self.places.rows(".step(")
            self._bases_of_training = frozenset(
                base.split("[", 1)[0].split(".", 1)[0]
                for cls in self.classes.values()
                if has_row(steps, cls.node.lineno, _last(cls.node))
                for base in cls.bases
            )
        return self._bases_of_training

    def mentions_gradient(self, node: ast.AST) -> bool:
        """Does an expression read some `.grad`? Few lines of a file do."""
        rows = self._gradient_rows
        if rows is None:
            text = self.places.text
            ends = [
                row for row, at in self.places.of(".grad") if not _is_word(text[at + 5 : at + 6])
            ]
            rows = self._gradient_rows = ends
        return (
            bool(rows)
            and has_row(rows, node.lineno, _last(node))  # type: ignore[attr-defined]
            and any(type(e) is ast.Attribute and e.attr == "grad" for e in parts_below(node))
        )

    def goes_backward_plainly(self) -> bool:
        """Does anything in this file call the backward of a loss?"""
        return bool(_PLAINLY.search(self.source.text))

    def trains(self, name: str) -> bool:
        """Is `name` itself stepped or cleared: `optim.zero_grad()`, and no module of that name?"""
        text = self.source.text
        if f"{name}.zero_grad(" not in text and f"{name}.step(" not in text:
            return False  # most names
        return bool(re.search(rf"(?<![\w.]){name}\.(?:zero_grad|step)\(", text))

    def clears(self) -> bool:
        """Does anything in the module clear gradients, or seem to?"""
        if self._clears is None:
            text = self.source.text
            self._clears = "zero_grad(" in text or _CLEARING.search(text) is not None
        return self._clears

    def clips(self) -> bool:
        """Is a clip called by one of its names?"""
        lines = [self._lines[row - 1] for row in self.places.rows("clip")]  # all of them hold it
        return any(f"{name}(" in line for line in lines for name in CLIPS)

    def has_events(self, node: ast.AST, words: tuple[str, ...] = EVENT_WORDS) -> bool:
        """May the text of `node` hold an event, told by such a word, or a call of what does?"""
        leading = self._leading.get(words)
        if leading is None:
            said = tuple(word for word in words if self.places.rows(word))  # most say no more
            leading = self._leading.get(said) or self._leading_lines(said)
            self._leading[said] = self._leading[words] = leading
        return leading.any_in(node.lineno, _last(node))  # type: ignore[attr-defined]

    def _leading_lines(self, words: tuple[str, ...]) -> LeadingLines:
        defined = [(node, "") for node in self.functions.values()]
        for cls in self.classes.values():
            defined += [(method, cls.name) for method in cls.methods.values()]
        return LeadingLines(
            self.places,
            [(e.name, owner, e.lineno, _last(e), documentation(e)) for e, owner in defined],
            words,
            self.away() if self.away is not None else (),
        )


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _last(node: ast.AST) -> int:
    last: int = node.end_lineno  # type: ignore[attr-defined]
    return last


def _is_view(node: ast.AST) -> bool:
    called = getattr(node.func, "attr", "") if isinstance(node, ast.Call) else ""
    return isinstance(node, ast.Subscript) or called in ("view", "view_as", "reshape", "narrow")
