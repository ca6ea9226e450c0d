"""Make the built-in models again: `python -m lmcore.training [name ...]`."""

from lmcore.training.builtin_models import main

if __name__ == "__main__":
    main()
