"""What every page shares: session state and caches, widgets, text."""
