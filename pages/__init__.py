"""The app's pages; the scripts themselves lie in pages/stages, and app.py lists them."""
