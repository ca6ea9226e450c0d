"""Requests as sent to inference servers, read and written: what they ask for, and what a server makes of it.

servers.py   what each server's interface calls its knobs, as data
curl.py      the body and the address out of a curl line
read.py      a body -> prompt or messages, settings, and what is ignored, in sentences
write.py     settings -> a request, exact or the nearest one found
"""

from lmcore.requests import curl
from lmcore.requests.fields import NOTES
from lmcore.requests.read import PROBLEMS, Request, RequestError, read
from lmcore.requests.servers import SERVERS, Server
from lmcore.requests.write import Written, write

__all__ = ["NOTES", "SERVERS", "Request", "RequestError", "Server", "Written", "read", "texts", "write"]


def texts() -> set[str]:
    """Return every text of remarks that a page may show and translate."""
    return {
        *NOTES,
        *PROBLEMS,
        *curl.PROBLEMS,
        *(why for server in SERVERS.values() for why in server.not_computed.values()),
    }
