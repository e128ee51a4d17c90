"""Points of a program: the states that each bucket may be in there, and under which conditions."""

from __future__ import annotations

Literals = frozenset[int]  # atom number * 2, plus 1 where it is true
Pair = tuple[int, Literals]  # state number and literals
Point = dict[str, frozenset[Pair]]  # bucket -> pairs

NO_LITERALS: Literals = frozenset()


def assume(point: Point, holds: int, fails: int) -> Point:
    """Return the pairs on one side of a branch, which then know that side."""
    return {
        bucket: frozenset(
            [
                (number, literals if holds in literals else literals | {holds})
                for number, literals in pairs
                if fails not in literals
            ]
        )
        for bucket, pairs in point.items()
    }


def known(point: Point, literals: Literals) -> Point:
    """Return the point with literals that hold there whatever the path."""
    return {
        bucket: frozenset((number, each | literals) for number, each in pairs)
        for bucket, pairs in point.items()
    }


def is_reachable(point: Point) -> bool:
    return not point or any(point.values())


def dropped(point: Point, varying: frozenset[int]) -> Point:
    """After a loop its own conditions say nothing any more."""
    return {
        bucket: frozenset(
            (number, frozenset(each for each in literals if each >= 0 and each // 2 not in varying))
            for number, literals in pairs
        )
        for bucket, pairs in point.items()
    }


def join(points: list[Point | None]) -> Point | None:
    found = [point for point in points if point is not None]
    if not found:
        return None
    if len(found) == 1:
        return found[0]
    joined: Point = {}
    for point in found:
        for bucket, pairs in point.items():
            joined[bucket] = joined[bucket] | pairs if bucket in joined else pairs
    return joined
