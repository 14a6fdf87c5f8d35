"""Who had what, of the items that were published."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from ownview.attacks.published_weights import People


def test_people_of_some_items_are_counted_as_if_there_were_no_others() -> None:
    histories = csr_matrix(np.random.default_rng(0).random((30, 12)) < 0.3)
    kept = np.array([1, 2, 5, 11])
    alone = People(histories[:, kept])
    for asked_before in (False, True):
        every = People(histories)
        if asked_before:
            assert every.together.shape == (12, 12)
        some = every.of_items(kept)
        assert some.count.tolist() == alone.count.tolist()
        assert some.together.toarray().tolist() == alone.together.toarray().tolist()
        assert some.of_one == alone.of_one
