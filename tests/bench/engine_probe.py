"""`streamlit run app.py` that notes what an engine's tokens wait for on their way: the server's clock is in each event.

    python -m tests.bench.engine_probe <port> <file>

writes the seconds from a token's leaving the engine to its being appended to the text, one a line, when it is told to
stop.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from lmcore.engines import engine as module

SECONDS: list[float] = []
_choice_of = module.choice_of


def noting(answer, engine):  # noqa: ANN001, ANN201
    """Take the time of an event's arrival in the thread that appends its token."""
    if isinstance(answer, dict) and "sent" in answer:
        SECONDS.append(time.time() - answer["sent"])
    return _choice_of(answer, engine)


def main() -> None:
    """Run the app until told to stop."""
    port, file = sys.argv[1], Path(sys.argv[2])
    module.choice_of = noting

    def stop(*_args: object) -> None:
        file.write_text("\n".join(map(str, SECONDS)))
        sys.stdout.flush()
        import os

        os._exit(0)

    signal.signal(signal.SIGUSR1, stop)
    from streamlit.web.cli import main as streamlit

    sys.argv = ["streamlit", "run", "app.py", "--server.headless=true", f"--server.port={port}"]
    streamlit()


if __name__ == "__main__":
    main()
