"""The table on the command line."""

from __future__ import annotations

import pytest

import lmcore
from lmcore.analysis.quantisation.costs import chunks_of, costs
from lmcore.quantise import main

TEXT = "Anna likes Tom, but Tom likes Mary. The weather today is fine.\n" * 6


def test_it_prints_the_numbers_of_each_variant(tmp_path, capsys) -> None:
    path = tmp_path / "a.txt"
    path.write_text(TEXT, encoding="utf-8")
    main(["small-world", "--text", str(path), "--context", "40", "--chunks", "2", "--variants", "float32,q4_0:kv8"])
    lines = capsys.readouterr().out.splitlines()
    lm = lmcore.load("small-world")
    *_, cost = costs(lm, ["q4_0:kv8"], chunks_of(lm, TEXT, 40)[:2])
    assert lines[0] == "small-world, 2 chunks, 38 tokens scored"
    assert [line.split()[0] for line in lines[1:]] == ["variant", "float32", "q4_0:kv8"]
    assert lines[3].split()[1:4] == ["4.53", "0.71", f"{cost.perplexity.value:.4f}"]
    assert f"{cost.mean_kld.value:.6f} ± {cost.mean_kld.error:.6f}" in lines[3]


def test_what_it_cannot_do_is_a_sentence(tmp_path, capsys) -> None:
    path = tmp_path / "a.txt"
    path.write_text(TEXT, encoding="utf-8")
    for arguments, sentence in (
        (["small-world:q4_0"], "small-world:q4_0 is quantised itself"),
        (["small-world", "--chunks", "0"], "--chunks must be at least 1, got 0"),
        (["no-such-model"], "no model is called 'no-such-model'"),
        (["small-world", "--text", str(tmp_path / "none")], "No such file"),
        (["small-world", "--text", str(path), "--variants", "q3_k"], "a variant must be one of"),
        (["small-world", "--text", str(path), "--context", "2"], "a chunk needs at least 4 tokens"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert sentence in str(ended.value) + capsys.readouterr().err, arguments
