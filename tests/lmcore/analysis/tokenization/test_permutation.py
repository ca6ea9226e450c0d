"""Renaming the ids changes names and nothing else."""

import pytest
import torch

import lmcore
from lmcore.analysis.tokenization.permutation import random_permutation, rename_ids


@pytest.mark.slow
@pytest.mark.parametrize("tied", [True, False])
def test_renamed_ids_give_the_renamed_logits(tied: bool) -> None:
    torch.manual_seed(0)
    config = lmcore.ModelConfig(
        vocab_size=50, d_model=16, n_layers=2, n_heads=2, context_length=16, tie_embeddings=tied, head_bias=True
    )
    model = lmcore.Model(config).eval()
    torch.nn.init.normal_(model.head.bias)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    new_id = random_permutation(50, seed=3)
    renamed = rename_ids(model, new_id)
    ids = torch.tensor([4, 40, 4, 7])
    with torch.no_grad():
        expected, got = model(ids), renamed(new_id[ids])
        moved_alone = model(new_id[ids])
    torch.testing.assert_close(got[:, new_id], expected, atol=1e-6, rtol=0)
    assert (moved_alone[:, new_id] - expected).abs().max() > 1e-3  # without its rows an id means another token
    assert torch.equal(renamed.token_embedding.weight[new_id], model.token_embedding.weight)
    assert (renamed.head.weight is renamed.token_embedding.weight) == tied
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_only_permutations_are_taken() -> None:
    model = lmcore.Model(lmcore.ModelConfig(vocab_size=3, d_model=4, n_layers=1, n_heads=1, context_length=4))
    with pytest.raises(ValueError, match="0 to 2"):
        rename_ids(model, torch.tensor([0, 1, 1]))


def test_permutations_differ_by_seed() -> None:
    assert not torch.equal(random_permutation(100, 1), random_permutation(100, 2))
    assert torch.equal(random_permutation(100, 1), random_permutation(100, 1))
