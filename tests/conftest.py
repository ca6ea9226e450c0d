"""What holds for every test: the workers of a run share the cores, and no test asserts a time."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

# Else torch starts a thread for each core in each worker.
if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
    # OpenMP reads it when torch is imported, here and in the servers that tests start.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
