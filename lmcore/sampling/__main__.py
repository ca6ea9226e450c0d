"""Score texts under a sampler's settings: `python -m lmcore.sampling MODEL --text FILE --top-p 0.9`.

The program stands beside the samplers because that is where one looks for it; it runs the model, which they never do.
"""

from lmcore.analysis.sampling.command import main

if __name__ == "__main__":
    main()
