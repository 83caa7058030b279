"""rushlight.array_api: where the Array API standard differs from PyTorch. Its own suite covers the rest."""

import numpy as np
import pytest

import rushlight as rl

xp = rl.array_api


def test_tensors_name_their_namespace():
    x = rl.ones(2)
    assert x.__array_namespace__() is xp and x.__array_namespace__(api_version="2023.12") is xp
    with pytest.raises(ValueError, match="Unrecognized array API version"):
        x.__array_namespace__(api_version="1999.01")
    assert x.to_device("cpu").equal(x)
    assert all(hasattr(xp, name) for name in xp.__all__)


def test_promotion_disregards_dimensions():
    wide, narrow = xp.ones((), dtype=xp.float64), xp.ones(3, dtype=xp.float32)
    assert xp.add(narrow, wide).dtype == xp.float64
    assert xp.result_type(narrow, wide) == xp.float64 and xp.result_type(narrow, 2.5) == xp.float32
    assert xp.where(narrow > 0, narrow, wide).dtype == xp.float64
    assert xp.can_cast(xp.int8, xp.int16) and not xp.can_cast(xp.float32, xp.int64)
    assert xp.maximum(narrow, 2).tolist() == [2, 2, 2]


def test_kinds_of_dtypes():
    assert xp.isdtype(xp.uint16, "unsigned integer") and xp.isdtype(xp.uint16, ("bool", "integral"))
    assert not xp.isdtype(xp.float32, "integral") and xp.isdtype(xp.complex64, "numeric")
    with pytest.raises(ValueError, match="unrecognized kind"):
        xp.isdtype(xp.int8, "small")
    assert xp.finfo(xp.complex64).dtype == xp.float32 and xp.iinfo(xp.int8).max == 127
    with pytest.raises(TypeError, match="cannot become"):
        xp.astype(xp.ones(2, dtype=xp.complex64), xp.float32)
    info = xp.__array_namespace_info__()
    assert info.dtypes(kind="bool") == {"bool": rl.bool} and info.capabilities()["boolean indexing"]


def test_sums_of_integers_are_wide():
    x = xp.asarray([200, 100], dtype=xp.uint8)
    assert xp.sum(x).dtype == xp.uint64 and int(xp.sum(x)) == 300
    assert xp.sum(x, axis=()).dtype == xp.uint64
    assert float(xp.var(xp.asarray([1.0, 3.0]))) == 1.0
    assert bool(xp.isnan(xp.var(xp.asarray(float("nan"))))) and float(xp.std(xp.asarray(2.0))) == 0
    assert xp.cumulative_sum(xp.asarray([1, 2]), include_initial=True).tolist() == [0, 1, 3]
    assert int(xp.prod(xp.asarray([[2, 3], [1, 1]]), axis=(0, 1))) == 6


def test_sets():
    found = xp.unique_all(xp.asarray([[3, 1], [1, 2]]))
    assert found.values.tolist() == [1, 2, 3] and found.indices.tolist() == [1, 3, 0]
    assert found.inverse_indices.tolist() == [[2, 0], [0, 1]] and found.counts.tolist() == [2, 1, 1]
    assert xp.unique_values(xp.asarray([1j, 1, 1j])).shape == (2,)


def test_ranges_and_shapes():
    assert xp.arange(5, 2).shape == (0,) and xp.arange(3, 0, -1).tolist() == [3, 2, 1]
    assert xp.linspace(0, 1, 4, endpoint=False).tolist() == [0, 0.25, 0.5, 0.75]
    assert xp.eye(2, 3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert xp.concat([xp.ones((1, 2)), xp.zeros(1)], axis=None).shape == (3,)
    with pytest.raises(ValueError, match="axis 0 has size 2"):
        xp.squeeze(xp.ones((2, 1)), 0)
    with pytest.raises(ValueError, match="without a copy"):
        xp.reshape(xp.ones((2, 3)).mT, (6,), copy=False)
    assert xp.clip(xp.asarray([1, 300]), max=1000).tolist() == [1, 300]


def test_a_vector_to_solve_for_has_one_dimension():
    a = np.random.default_rng(0).standard_normal((2, 2, 2))
    x = xp.linalg.solve(rl.from_numpy(a), xp.eye(2, dtype=xp.float64))
    np.testing.assert_allclose(x.numpy(), np.linalg.inv(a), atol=1e-12)
    assert xp.linalg.vecdot(xp.asarray([1j, 2]), xp.asarray([1j, 1])).item() == 3
    assert xp.fft.rfftn(xp.ones((4, 6)), axes=(0, 1)).shape == (4, 4)


def test_numpy_functions_take_tensors():
    x = rl.tensor([1.0, 4.0])
    assert isinstance(np.sqrt(x), rl.Tensor) and np.sqrt(x).tolist() == [1, 2]
    assert np.add(x, 1).tolist() == [2, 5] and np.add(np.ones(2), x).tolist() == [2, 5]
    assert np.asarray(x).sum() == 5 and complex(rl.tensor(2j)) == 2j
