"""The app's pages; the scripts themselves lie in pages/stages, and app.py lists them."""

import os

# Every run is a thread, and after a product on two cores its helper thread would look for more work for milliseconds,
# a third of all that a small page computes. Read when torch is imported: as many looks take some 50 microseconds.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")
