"""Losses that work against each other: a discriminator's and its generator's.

`criterion(D(fake), zeros)` trains D, `criterion(D(fake), ones)` trains G *against* D. Where both
go backward before D steps, one after the other or as one sum, D's update holds G's loss as well.
So does that of a critic on its own loss and the actor's, which comes through it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import combinations, islice, permutations, product
from typing import TYPE_CHECKING, NamedTuple

from zerograd.lifecycle.events import EventKind, Spot
from zerograd.lifecycle.state import BucketState, Contribution
from zerograd.static.engine.identity.frame import path_of
from zerograd.static.engine.identity.ir import Happening
from zerograd.static.engine.judging.origins import Assignments, assignments_around, loss_of
from zerograd.static.engine.judging.pulls import Pull, pulls
from zerograd.static.engine.judging.sums import (
    Passage,
    Term,
    names_of_sum,
    signed_terms,
    terms,
    terms_of,
)
from zerograd.static.engine.text.places import nodes_on
from zerograd.static.engine.text.stores import statements_in
from zerograd.static.engine.text.words import words_of

if TYPE_CHECKING:
    from zerograd.static.engine.flow.buckets import Buckets
    from zerograd.static.engine.flow.flow import Flow

OPPOSED = (
    "{owner}.step() also uses the gradients of a loss that works against it: "
    "one pulls {output} {one}, the other {two}"
)
SUMMED = (
    "{owner}.step() also uses the gradients of a loss that is not its own: "
    "{output} goes backward in one sum with it"
)
ADDED = (
    "{owner}.step() also uses the gradients of a loss that is not its own: "
    "{output} goes backward before it"
)
CANCELLED = (
    "{owner}.step() also uses the gradients of a loss that works against it: "
    "{output} goes backward with minus in one, with plus in the other"
)
SEPARATE = (
    "call {owner}.step() before the other loss goes backward, or {owner}.zero_grad() between them; "
    "and detach() what the generator made in the discriminator's own loss"
)

_STATIONS = (
    "fills its gradients",
    "adds onto them, for the opposite",
    "steps on both",
)
_STATIONS_OF_SUM = ("fills its gradients with both losses", "steps on both")

_JUDGES = frozenset(
    (
        *("d", "dis", "disc", "discrim", "discriminator", "critic", "critics", "q", "qf"),
        *("value", "values", "td", "bellman"),
    )
)
_MAKERS = frozenset(
    (
        *("g", "gen", "generator", "actor", "policy", "pi"),
        *("vae", "vqvae", "vqgan", "ae", "autoencoder"),  # trained against a discriminator, too
    )
)
_MOST_PULLS = 64
_SAMPLES = frozenset(("fake", "real", "f", "r"))  # of the judge's own: loss_g_fake
_KINDS = ("fake", "real", "loss")  # lossDfake
# What is frozen for a while is not filled, and a reversed gradient pulls the other way.
_OTHERWISE = re.compile(
    r"requires_grad_\((?!\s*(?:True\s*)?\))|\.requires_grad\s*=(?!\s*True\b)|set_requires_grad"
    r"|toggle|freeze|revers|grl|inputs\s*="
    r"|register_hook",
    re.IGNORECASE,
)


class Opposition(NamedTuple):
    """Two losses in one step: the backwards that left them, and what is told of them."""

    first: Contribution
    second: Contribution
    message: str
    names: dict[str, str]

    def stations(self, step: Spot) -> list[tuple[Spot, str]]:
        """Return the way to the step: where each loss came in, and what it does there."""
        if self.first == self.second:
            return list(zip((self.first.spot, step), _STATIONS_OF_SUM, strict=True))
        return list(zip((self.first.spot, self.second.spot, step), _STATIONS, strict=True))


class Opposed:
    """Finds, at a step, two losses in its gradients that oppose each other."""

    def __init__(self, buckets: Buckets, flow: Flow) -> None:
        self._buckets = buckets
        self._flow = flow
        self._pulls: dict[int, tuple[Pull, ...]] = {}
        self._sums: dict[tuple[Spot, frozenset[str], str], tuple[str, dict[str, str]] | None] = {}
        self._scopes: dict[tuple[int, tuple[int, int] | None], Assignments] = {}
        self._names: dict[tuple[int, str], set[str]] = {}
        self._made: dict[tuple[Spot, Spot, str], tuple[Pull, Pull] | None] = {}

    def at(self, step: Happening, state: BucketState) -> Opposition | None:
        """Return the two, in the order in which they came."""
        assert step.event is not None
        owner = step.event.owner
        unused = [each for each in state.contributions if owner not in each.used_by]
        if not any(_others(each, owner) for each in unused):
            return None  # neither is another's loss
        if "toggle" in _text_around(step):
            return None  # as Lightning does: the other networks are kept out of a loss
        for first, second in combinations(unused, 2):
            found = self._over_what_is_made(first, second, step)
            if found:
                return Opposition(first, second, OPPOSED, _sides(found))
        held = [each for each in unused if owner in each.fills]
        mine = self._names_of(step)
        for first, second in combinations(held, 2):
            found = _contest(self._pulls_at(first), self._pulls_at(second), mine)
            if found:
                return Opposition(first, second, OPPOSED, _sides(found))
            cancelled = self._cancelled(first, second)
            if cancelled:
                return Opposition(first, second, CANCELLED, {"output": cancelled})
            added = self._between(first, second, step, mine)
            if added:
                return Opposition(first, second, ADDED, {"output": added})
        for each in held:
            key = (each.spot, _others(each, owner), owner)
            if key not in self._sums:
                self._sums[key] = self._within(each, owner, mine)
            told = self._sums[key]
            if told is not None:
                return Opposition(each, each, *told)
        return None

    def _names_of(self, step: Happening) -> set[str]:
        """Return what its networks are called by, and the lists that they were put into."""
        assert step.event is not None
        key = (id(step.unit), step.event.owner)
        if key not in self._names:
            names = {_last(bucket) for bucket in step.event.buckets}
            lists = [
                _last(path_of(each.func.value))
                for each in nodes_on(step.unit.places.rows("append"), step.unit.source.tree)
                if isinstance(each, ast.Call)
                and isinstance(each.func, ast.Attribute)
                and each.func.attr == "append"
                and [path_of(item) for item in each.args if path_of(item) in names]
            ]
            asked = _methods_asking(step, names)  # `model.score(x)`, which gives `self.d(x)`
            self._names[key] = names.union(filter(None, lists), asked)
        return self._names[key]

    def _within(
        self, held: Contribution, owner: str, mine: set[str]
    ) -> tuple[str, dict[str, str]] | None:
        """Look into one loss that also trains others, whose output the owner's network judges."""
        backward = self._buckets.backward_at(held.spot)
        loss = loss_of(backward.node) if backward is not None else None
        if backward is None or loss is None:
            return None
        for other in sorted(_others(held, owner)):
            made_by = {_last(each) for each in self._buckets.holdings[other]}
            if made_by & mine or not self._steps_on(other, held):
                continue  # one network, or a loss that is the owner's alone
            if _OTHERWISE.search(_text_around(backward)):
                return None
            given = self._given(backward)
            through = Passage(mine, made_by)
            contested = self._pulls_at(held)
            found = _contest(
                contested, [each for each in contested if through.is_handed(each.call, given)], mine
            )
            if found:
                return OPPOSED, _sides(found)
            summed = _in_one_sum(loss, given, through, owner, other)
            if summed:
                return SUMMED, {"output": summed}
        return None

    def _between(
        self, first: Contribution, second: Contribution, step: Happening, mine: set[str]
    ) -> str:
        """Look at two losses that went backward one after the other, as at the terms of a sum."""
        assert step.event is not None
        owner = step.event.owner
        judge = owner if _has_role(owner, _JUDGES) else step.name  # it may have no name but here
        named: list[list[tuple[Term, Assignments]]] = []
        for each in (first, second):
            backward = self._buckets.backward_at(each.spot)
            loss = loss_of(backward.node) if backward is not None else None
            if backward is None or loss is None or _OTHERWISE.search(_text_around(backward)):
                return ""
            given = self._given(backward)
            named.append([(term, given) for term in terms_of(loss, given)])
        for other in sorted(_others(first, owner) | _others(second, owner)):
            made_by = {_last(each) for each in self._buckets.holdings[other]}
            if made_by & mine or not any(self._steps_on(other, each) for each in (first, second)):
                continue
            through = Passage(mine, made_by)
            for own, beside in permutations(named):
                found = _other_loss(own, beside, through, judge, other)
                if found:
                    return found
        return ""

    def _over_what_is_made(
        self, first: Contribution, second: Contribution, step: Happening
    ) -> tuple[Pull, Pull] | None:
        """Return two losses that pull apart what another's network says of what this one's made.

        `d_loss` on `D(fake)`, where fake was not detached, goes back into G as well: the text
        proves it, whatever else is in the loss.
        """
        assert step.event is not None
        key = (first.spot, second.spot, step.event.owner)
        if key not in self._made:
            self._made[key] = self._contest_over_what_is_made(first, second, step.event.buckets)
        return self._made[key]

    def _contest_over_what_is_made(
        self, first: Contribution, second: Contribution, buckets: Sequence[str]
    ) -> tuple[Pull, Pull] | None:
        around = {each.rpartition(".")[0] for each in buckets} - {"", "self"}
        makers = {_last(each) for each in (*buckets, *around)}
        made: list[list[Pull]] = []
        for each in (first, second):
            backward = self._buckets.backward_at(each.spot)
            if backward is None or _OTHERWISE.search(_text_around(backward)):
                return None
            given = self._given(backward)
            through = Passage(set(), makers | _also_called(makers, backward))
            made.append(
                [each for each in self._pulls_at(each) if through.is_handed(each.call, given)]
            )
        return next(((one, two) for one, two in product(*made) if one.opposes(two)), None)

    def _cancelled(self, first: Contribution, second: Contribution) -> str:
        """Return the name of a term that one of the losses has with plus, and one with minus."""
        signed: list[set[tuple[str, int, bool]]] = []
        for each in (first, second):
            backward = self._buckets.backward_at(each.spot)
            loss = loss_of(backward.node) if backward is not None else None
            if backward is None or loss is None or _OTHERWISE.search(_text_around(backward)):
                return ""
            signed.append(set(signed_terms(loss, self._given(backward))))
        both = {
            (name, line) for name, line, plus in signed[0] if (name, line, not plus) in signed[1]
        }
        return min(both, default=("", 0))[0]

    def _steps_on(self, owner: str, held: Contribution) -> bool:
        return any(
            each.spot == held.spot
            for step in self._buckets.happenings
            if step.kind is EventKind.STEP and step.event is not None and step.event.owner == owner
            for bucket in step.event.buckets
            for number, _ in self._flow.reached.get(id(step), {}).get(bucket, ())
            for each in self._flow.states[number][0].contributions
        )

    def _pulls_at(self, held: Contribution) -> tuple[Pull, ...]:
        backward = self._buckets.backward_at(held.spot)
        if backward is None:
            return ()
        found = self._pulls.get(id(backward))
        if found is None:
            loss = loss_of(backward.node)
            read = pulls(loss, self._given(backward)) if loss is not None else ()
            found = self._pulls[id(backward)] = tuple(islice(read, _MOST_PULLS))
        return found

    def _given(self, backward: Happening) -> Assignments:
        key = (id(backward.unit), backward.scope)
        if key not in self._scopes:
            self._scopes[key] = assignments_around(backward)
        return self._scopes[key]


def _methods_asking(step: Happening, names: set[str]) -> set[str]:
    """Return the methods of the file that give back what one of these networks says."""
    return {
        name
        for cls in step.unit.classes.values()
        for name, method in cls.methods.items()
        for each in statements_in(method.body)
        if isinstance(each, ast.Return)
        and isinstance(each.value, ast.Call)
        and path_of(each.value.func) in {f"self.{one}" for one in names}
    }


def _others(held: Contribution, owner: str) -> frozenset[str]:
    """Return the other optimizers whose networks it filled, though they have cleared by now."""
    return (held.fills | held.used_by) - {owner}


def _contest(
    some: Sequence[Pull], others: Sequence[Pull], mine: set[str]
) -> tuple[Pull, Pull] | None:
    """Return two that pull the same output of these networks apart."""
    for one, other in product(some, others):
        if one.network.rsplit(".", 1)[-1] in mine and one.opposes(other):
            return one, other
    return None


def _sides(found: tuple[Pull, Pull]) -> dict[str, str]:
    one = min(found, key=lambda each: each.up)
    if one.to:
        return {"output": one.output, "one": f"from {one.to}", "two": "to it"}
    return {"output": one.output, "one": "down", "two": "up"}


def _in_one_sum(
    loss: ast.expr, given: Assignments, through: Passage, owner: str, other: str
) -> str:
    """Return a term of the sum that by its name is the maker's, and comes through the judge."""
    if any(_has_role(each, _JUDGES | _MAKERS) for each in names_of_sum(loss, given)):
        return ""  # one loss by its name
    named = [(each, given) for each in terms(loss, given)]
    return _other_loss(named, named, through, owner, other)


def _other_loss(
    mine: list[tuple[Term, Assignments]],
    beside: list[tuple[Term, Assignments]],
    through: Passage,
    owner: str,
    other: str,
) -> str:
    """Return the name of the maker's loss beside those that the judge's own is one of."""
    if not (_has_role(owner, _JUDGES) and _has_role(other, _MAKERS)):
        return ""
    own = any(
        _is_for(each.names, _JUDGES, _MAKERS) and through.passes(each.node, given)
        for each, given in mine
    )
    for each, given in beside if own else ():
        if _is_for(each.names, _MAKERS, _JUDGES | _SAMPLES) and through.passes(
            each.node, given, handed=True
        ):
            return each.names[0]
    return ""


def _is_for(names: tuple[str, ...], these: frozenset[str], those: frozenset[str]) -> bool:
    return any(_has_role(each, these) for each in names) and not any(
        _has_role(each, those) for each in names
    )


def _has_role(name: str, role: frozenset[str]) -> bool:
    return any(word in role for word in _roles(name))


def _roles(name: str) -> Iterator[str]:
    for word in words_of(name):
        yield word
        for kind in _KINDS:
            if word.endswith(kind):
                yield word.removesuffix(kind)


def _also_called(names: set[str], backward: Happening) -> set[str]:
    """Return the attributes that the file keeps what bears these names in: `self.G = model`."""
    return {
        _last(path_of(target))
        for each in backward.unit.statements()
        if isinstance(each, ast.Assign) and path_of(each.value) in names
        for target in each.targets
        if isinstance(target, ast.Attribute)
    }


def _text_around(backward: Happening) -> str:
    source = backward.unit.source
    if backward.scope is None:
        return source.text
    first, last = backward.scope
    return "\n".join(source.lines[first - 1 : last])


def _last(bucket: str) -> str:
    return bucket.rsplit(".", 1)[-1].split("@", 1)[0].split("[", 1)[0]
