"""What the tests of the tokenization page share."""

import tokenizers
from streamlit.testing.v1 import AppTest

from tests.pages.harness import ROOT, clean, open_page

REFERENCE = tokenizers.Tokenizer.from_file(str(ROOT / "lmcore/builtin/tokenizer.json"))
REFERENCE.encode_special_tokens = True


def run(view: str = "tokens", **address: str) -> AppTest:
    """Open the page in a view, as a fresh visitor with this address."""
    return clean(open_page("tokenization", **{"prompt": "今天天气", "tokenization.view": view, **address}))
