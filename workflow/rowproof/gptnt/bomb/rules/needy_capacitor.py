"""Capacitor Discharge: hold the lever before the charge reaches its limit (all in milliseconds of charging)."""

CAPACITY_MS = 45_000
# The lever takes off five seconds of charge per second.
DISCHARGE_FACTOR = 5
