"""The learning rate as a pure function of the step: peak x warmup x schedule x factor of the stage.

Schedules go from 1 to `optim.final`, which the last step has: linear, cosine (Loshchilov and Hutter 2017), and wsd
(warmup, stable, decay: Hu et al. 2024, arXiv:2404.06395), which stays at 1 until its last share of the steps.
"""

from __future__ import annotations

import math

from corpusmill.tokens.order import Plan
from training.config import Optim


def rate(optim: Optim, plan: Plan, step: int) -> float:
    """The learning rate of a step, 0 being the first."""
    warm = min(1.0, (step + 1) / optim.warmup_steps) if optim.warmup_steps else 1.0
    stage, passed = plan.stage_at(step)
    factor = stage.lr[0] + (stage.lr[1] - stage.lr[0]) * passed
    return optim.lr * warm * factor * schedule(optim, step, plan.steps)


def schedule(optim: Optim, step: int, steps: int) -> float:
    """The factor of the schedule at a step of so many: 1 or less."""
    match optim.schedule:
        case "constant":
            return 1.0
        case "wsd":
            falling = max(1, round(optim.decay * steps))
            passed = (step + 1 - (steps - falling)) / falling
        case _:
            passed = (step + 1 - optim.warmup_steps) / max(1, steps - optim.warmup_steps)
    passed = min(max(passed, 0.0), 1.0)
    if optim.schedule == "cosine":
        passed = (1 - math.cos(math.pi * passed)) / 2
    return 1 - (1 - optim.final) * passed
