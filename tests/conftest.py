"""The workers of a run share the cores: else torch starts a thread for each core in each of them."""

from __future__ import annotations

import os

if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
    # OpenMP reads it when torch is imported, here and in the servers that tests start.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
