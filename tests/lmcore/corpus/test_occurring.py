"""The tokens that occur, against encoding every text of the small world."""

import lmcore
from lmcore.corpus.encoded import encode_scenes
from lmcore.corpus.occurring import occurring_tokens


def test_they_are_those_of_all_scenes_and_the_end() -> None:
    tokenizer = lmcore.builtin.tokenizer()
    scenes = encode_scenes(tokenizer)
    found = set(scenes.ids.ravel().tolist()) - {-1} | {scenes.end_of_text}
    assert set(occurring_tokens(tokenizer)) == found
    assert list(occurring_tokens(tokenizer)) == sorted(found)
    assert tokenizer.encode("猫").ids[0] in found and tokenizer.encode("\x07").ids[0] not in found
