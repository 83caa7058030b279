"""Sobol' sequences: points that fill a cube more evenly than random ones."""

import rushlight as torch

__all__ = ["SobolEngine"]


class SobolEngine:
    """Points of a Sobol' sequence in the unit cube, with the direction numbers of Joe and Kuo.

    >>> engine = torch.quasirandom.SobolEngine(dimension=5)
    >>> points = engine.draw(16)

    The table of direction numbers is SciPy's, which has to be installed.

    Args:
        dimension: at most 21,201.
        scramble: shuffle the points (Owen's way, with random matrices and a shift), so that runs differ.
        seed: of the scrambling; by default it follows ``torch.manual_seed``.
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension, scramble=False, seed=None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.sobolstate = _direction_numbers(dimension)
        self.shift = torch.zeros(dimension, dtype=torch.int64)
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n=1, out=None, dtype=None):
        """The next `n` points, of shape (n, dimension)."""
        dtype = torch.get_default_dtype() if dtype is None else dtype
        index = torch.arange(max(self.num_generated, 1), self.num_generated + n)
        points = self._points(index)
        result = points.to(dtype) * (1 / 2**self.MAXBIT)
        if self.num_generated == 0:
            result = torch.cat((self._first_point.to(dtype), result))
        if len(index):
            self.quasi = points[-1].clone()
        self.num_generated += n
        return result if out is None else out.resize_as_(result).copy_(result)

    def _points(self, index):
        """The points of these numbers as integers: each bit of a number's Gray code adds a direction."""
        gray = (index ^ (index >> 1)).unsqueeze(1)
        points = self.shift.repeat(len(index), 1)
        for bit in range(int(gray.max()).bit_length() if len(index) else 0):
            points ^= ((gray >> bit) & 1) * self.sobolstate[:, bit]
        return points

    def draw_base2(self, m, out=None, dtype=None):
        """The next ``2**m`` points, if their number altogether is a power of two."""
        n, total = 2**m, self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} "
                f"points have been previously generated, then: n={self.num_generated}+2**{m}={total}. If you "
                "still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self):
        """Begin again."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n):
        """Leave out `n` points."""
        self.num_generated += n
        self.quasi = self._points(torch.tensor([max(self.num_generated - 1, 0)]))[0]
        return self

    def _scramble(self):
        generator = None if self.seed is None else torch.Generator().manual_seed(self.seed)
        bits = self.MAXBIT
        weights = 2 ** torch.arange(bits)
        self.shift = torch.randint(2, (self.dimension, bits), generator=generator) @ weights
        matrices = torch.randint(2, (self.dimension, bits, bits), generator=generator).tril()
        matrices.diagonal(dim1=-2, dim2=-1).fill_(1)
        # Each direction's bits, highest first, times the matrix over the field of two elements.
        highest_first = weights.flip(0)
        digits = (self.sobolstate.unsqueeze(-1) // highest_first) % 2
        self.sobolstate = (digits.float() @ matrices.float().mT).long().remainder(2) @ highest_first

    def __repr__(self):
        shown = [f"dimension={self.dimension}"]
        shown += ["scramble=True"] if self.scramble else []
        shown += [f"seed={self.seed}"] if self.seed is not None else []
        return f"{type(self).__name__}({', '.join(shown)})"


def _direction_numbers(dimension):
    try:
        from scipy.stats.qmc import Sobol
    except ImportError:
        raise ImportError(
            "SobolEngine: the direction numbers come from SciPy, which is not installed; pip install scipy"
        ) from None
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = Sobol(dimension, scramble=False, bits=SobolEngine.MAXBIT)._sv
    return torch.from_numpy(table.astype("int64"))
