import os

from hypothesis import HealthCheck, settings

from vellum.testing import ArrayMachine

TestArrays = ArrayMachine.TestCase
TestArrays.settings = settings(
    max_examples=int(os.environ.get("VELLUM_MACHINE_EXAMPLES", 15)),
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
