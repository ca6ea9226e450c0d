"""Score texts under a sampler's settings: `python -m lmcore.analysis.sampling MODEL --text FILE --top-p 0.9`."""

from lmcore.analysis.sampling.command import main

if __name__ == "__main__":
    main()
