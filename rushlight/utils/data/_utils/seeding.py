"""Random numbers in a worker: seeds that differ between workers and agree with PyTorch's, and their state."""

import importlib.util
import random
import sys
from array import array

import rushlight
from rushlight.utils.data._utils.worker import get_worker_info

_MASK = 0xFFFFFFFF
# NumPy's SeedSequence (Melissa O'Neill's seed_seq with a pool of four words), written out so that NumPy need
# not be imported for it.
_INIT_A, _MULT_A = 0x43B0D7E5, 0x931E8875
_INIT_B, _MULT_B = 0x8B51F9DD, 0x58F38DED
_MIX_L, _MIX_R = 0xCA01F9DD, 0x4973F715


def _hasher(constant, factor):
    def hashed(value):
        nonlocal constant
        value ^= constant
        constant = constant * factor & _MASK
        value = value * constant & _MASK
        return value ^ value >> 16

    return hashed


def _mix(x, y):
    value = (_MIX_L * x - _MIX_R * y) & _MASK
    return value ^ value >> 16


def _generate_state(base_seed, worker_id):
    """Four words that seed NumPy: far apart for all pairs of arguments."""
    hashed = _hasher(_INIT_A, _MULT_A)
    pool = [hashed(word) for word in (worker_id, base_seed & _MASK, base_seed >> 32, 0)]
    for source in range(4):
        for target in range(4):
            if source != target:
                pool[target] = _mix(pool[target], hashed(pool[source]))
    hashed = _hasher(_INIT_B, _MULT_B)
    return [hashed(word) for word in pool]


class _SeedNumpyOnImport:
    """Seeds ``numpy.random`` when a dataset imports it, so that those that do not need not wait for it."""

    def __init__(self, seed):
        self._seed = seed

    def find_spec(self, name, path=None, target=None):
        if name != "numpy.random":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            module.seed(self._seed)

        spec.loader.exec_module = exec_module
        return spec


def seed_all(base_seed, worker_id):
    """Seeds Python's, Rushlight's and NumPy's global generators; returns the seed of the first two."""
    seed = base_seed + worker_id
    random.seed(seed)
    rushlight.manual_seed(seed)
    words = _generate_state(base_seed, worker_id)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(words)
    else:
        sys.meta_path.insert(0, _SeedNumpyOnImport(words))
    return seed


class seeded:
    """Inside, the generators of this process, or of a worker that is a thread, begin at a seed."""

    def __init__(self, seed):
        self._seed = seed

    def __enter__(self):
        self._rng = getattr(get_worker_info(), "rng", None)
        if self._rng is not None:
            self._before = self._rng.begin_at(self._seed)
            return
        self._before, self._finders = get_state(), list(sys.meta_path)
        seed_all(self._seed, 0)

    def __exit__(self, *exc):
        if self._rng is not None:
            self._rng.go_back_to(self._before)
            return
        for finder in [f for f in sys.meta_path if isinstance(f, _SeedNumpyOnImport)]:
            if finder not in self._finders:
                sys.meta_path.remove(finder)
        set_state(self._before)


class WorkerRNG:
    """The random generators of a worker that is a thread, seeded like those of a worker process."""

    def __init__(self, base_seed, worker_id):
        self.seed = base_seed + worker_id
        self.random_generator = random.Random(self.seed)
        self.torch_generator = rushlight.Generator().manual_seed(self.seed)
        self._words = _generate_state(base_seed, worker_id)
        self._numpy = None

    @property
    def numpy_generator(self):
        """A ``numpy.random.Generator``; None without NumPy."""
        if self._numpy is None and importlib.util.find_spec("numpy") is not None:
            import numpy

            self._numpy = numpy.random.default_rng(self._words)
        return self._numpy

    def begin_at(self, seed):
        """Seeds all of them; returns what `go_back_to` takes."""
        before = self.get_state(), self._numpy, self._words
        self.random_generator.seed(seed)
        self.torch_generator.manual_seed(seed)
        self._numpy, self._words = None, _generate_state(seed, 0)
        return before

    def go_back_to(self, before):
        state, self._numpy, self._words = before
        self.set_state(state)

    def get_state(self):
        version, words, gauss = self.random_generator.getstate()
        own = bytes(memoryview(self.torch_generator.get_state().untyped_storage()))
        numpy_state = None if self._numpy is None else self._numpy.bit_generator.state
        return own, (version, array("I", words).tobytes(), gauss), numpy_state

    def set_state(self, state):
        own, (version, words, gauss), numpy_state = from_plain(state)
        self.torch_generator.set_state(_tensor(own))
        self.random_generator.setstate((version, tuple(array("I", words)), gauss))
        if numpy_state is not None:
            self.numpy_generator.bit_generator.state = numpy_state


# --- states: bytes inside a process and between processes, tensors in what programs save


def get_state():
    """The state of the three generators, cheaply."""
    own = bytes(memoryview(rushlight.get_rng_state().untyped_storage()))
    version, words, gauss = random.getstate()
    numpy_random = sys.modules.get("numpy.random")
    numpy_state = None
    if numpy_random is not None:
        name, keys, *rest = numpy_random.get_state()
        numpy_state = (name, keys.tobytes(), *rest)
    return own, (version, array("I", words).tobytes(), gauss), numpy_state


def set_state(state):
    own, (version, words, gauss), numpy_state = from_plain(state)
    rushlight.set_rng_state(_tensor(own))
    random.setstate((version, tuple(array("I", words)), gauss))
    if numpy_state is not None:
        import numpy

        name, keys, *rest = numpy_state
        numpy.random.set_state((name, numpy.frombuffer(keys, "uint32"), *rest))


def _tensor(data):
    return rushlight.frombuffer(bytearray(data), dtype=rushlight.uint8)


def to_plain(state):
    """The same with tensors for bytes: what a file may hold and `load` reads without running code."""
    if isinstance(state, bytes):
        return _tensor(state)
    return tuple(map(to_plain, state)) if isinstance(state, tuple) else state


def from_plain(state):
    if isinstance(state, rushlight.Tensor):
        return bytes(state.tolist())
    return tuple(map(from_plain, state)) if isinstance(state, (tuple, list)) else state
