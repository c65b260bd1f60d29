"""Losses of any size become values that a model can be fitted to."""

import numpy as np

from trainshed.suggest.warping import warp


def test_a_loss_beyond_all_others_is_cut_without_a_warning():
    values = warp(np.array([0.0, 1e-200, 2e-200, 1e300])).values
    assert np.isfinite(values).all() and values.argmax() == 3
