"""For every folder of tests: helpers beside this file can be imported, and time proves nothing."""

from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, and of that no test is to fail.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")
