"""The rules, one module and one page each, in code order."""

from __future__ import annotations

from zerograd.lifecycle.rule import Rule
from zerograd.rules.absent_gradient_used import RULE as ABSENT_GRADIENT_USED
from zerograd.rules.clip_after_step import RULE as CLIP_AFTER_STEP
from zerograd.rules.clip_before_unscale import RULE as CLIP_BEFORE_UNSCALE
from zerograd.rules.gradient_never_used import RULE as GRADIENT_NEVER_USED
from zerograd.rules.gradient_reused import RULE as GRADIENT_REUSED
from zerograd.rules.leaf_gradient_grows import RULE as LEAF_GRADIENT_GROWS
from zerograd.rules.leaked_gradient import RULE as LEAKED_GRADIENT
from zerograd.rules.lost_gradient import RULE as LOST_GRADIENT
from zerograd.rules.missing_scaler_update import RULE as MISSING_SCALER_UPDATE
from zerograd.rules.rank_desync import RULE as RANK_DESYNC
from zerograd.rules.scaler_bypassed import RULE as SCALER_BYPASSED
from zerograd.rules.scaler_updated_early import RULE as SCALER_UPDATED_EARLY
from zerograd.rules.stale_gradient import RULE as STALE_GRADIENT
from zerograd.rules.step_without_gradient import RULE as STEP_WITHOUT_GRADIENT
from zerograd.rules.sync_every_micro_batch import RULE as SYNC_EVERY_MICRO_BATCH
from zerograd.rules.tail_lost import RULE as TAIL_LOST
from zerograd.rules.uncalled_method import RULE as UNCALLED_METHOD
from zerograd.rules.unowned_gradient_grows import RULE as UNOWNED_GRADIENT_GROWS
from zerograd.rules.unused_allow import RULE as UNUSED_ALLOW
from zerograd.rules.window_cleared_early import RULE as WINDOW_CLEARED_EARLY
from zerograd.rules.window_guard_wrong import RULE as WINDOW_GUARD_WRONG
from zerograd.rules.window_not_averaged import RULE as WINDOW_NOT_AVERAGED

ALL_RULES: tuple[Rule, ...] = (
    STALE_GRADIENT,
    LOST_GRADIENT,
    UNCALLED_METHOD,
    ABSENT_GRADIENT_USED,
    UNOWNED_GRADIENT_GROWS,
    LEAKED_GRADIENT,
    LEAF_GRADIENT_GROWS,
    GRADIENT_NEVER_USED,
    CLIP_BEFORE_UNSCALE,
    MISSING_SCALER_UPDATE,
    SCALER_BYPASSED,
    CLIP_AFTER_STEP,
    SCALER_UPDATED_EARLY,
    STEP_WITHOUT_GRADIENT,
    GRADIENT_REUSED,
    WINDOW_CLEARED_EARLY,
    TAIL_LOST,
    WINDOW_NOT_AVERAGED,
    WINDOW_GUARD_WRONG,
    SYNC_EVERY_MICRO_BATCH,
    RANK_DESYNC,
    UNUSED_ALLOW,
)

BY_CODE: dict[str, Rule] = {rule.code: rule for rule in ALL_RULES}
BY_NAME: dict[str, Rule] = {rule.name: rule for rule in ALL_RULES}
