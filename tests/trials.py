"""How many generated cases a test tries: a few, or as many times more as TWO_ROUTES_TRIALS says."""

import os

from hypothesis import HealthCheck, settings

TRIALS = int(os.environ.get("TWO_ROUTES_TRIALS", "1"))


def generated(examples: int, **options) -> settings:
    """The same cases every time when they are few; other ones each time when they are many."""
    return settings(max_examples=examples * TRIALS, deadline=None, database=None, derandomize=TRIALS == 1,
                    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture], **options)
