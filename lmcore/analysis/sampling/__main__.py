"""The same program as `python -m lmcore.sampling`, under its older name."""

from lmcore.analysis.sampling.command import main

if __name__ == "__main__":
    main()
