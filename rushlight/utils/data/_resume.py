"""Exact resumption: what a loader must remember to go on in the middle of an epoch, and how it gets there."""

from rushlight.utils.data._utils import seeding


def _generators(loader):
    """The generators that belong to the loader and its sampler, by name."""
    sampler = getattr(loader, "sampler", None)  # fastai's loaders have none
    found = {"loader": loader.generator, "sampler": getattr(sampler, "generator", None)}
    return {name: generator for name, generator in found.items() if generator is not None}


def _samplers(loader):
    found = {name: getattr(loader, name, None) for name in ("sampler", "batch_sampler")}
    return {name: sampler for name, sampler in found.items() if sampler is not None}


def _sampler_state(sampler):
    """A sampler's own account of its state, or the epoch that it counts."""
    if callable(getattr(sampler, "state_dict", None)) and callable(getattr(sampler, "load_state_dict", None)):
        return {"state": sampler.state_dict()}
    if callable(getattr(sampler, "set_epoch", None)) and isinstance(getattr(sampler, "epoch", None), int):
        return {"epoch": sampler.epoch}
    return {}


def _set_sampler_state(sampler, state):
    if "state" in state:
        sampler.load_state_dict(state["state"])
    elif "epoch" in state:
        sampler.set_epoch(state["epoch"])


def capture(loader):
    """All from which a loader draws the order of an epoch that begins now."""
    return {
        "global": seeding.get_state(),
        "generators": {name: g.get_state() for name, g in _generators(loader).items()},
        "samplers": {name: _sampler_state(s) for name, s in _samplers(loader).items()},
    }


def to_plain(captured):
    """The same as programs save it."""
    return {**captured, "global": seeding.to_plain(captured["global"])}


def restore_own(loader, state):
    """Puts back what belongs to the loader; the global generators are the program's."""
    for name, generator in _generators(loader).items():
        if name in state["generators"]:
            generator.set_state(state["generators"][name])
    for name, sampler in _samplers(loader).items():
        _set_sampler_state(sampler, state["samplers"].get(name, {}))


class at_beginning_of:
    """Inside, generators stand where they stood when an epoch began; the global ones are put back after."""

    def __init__(self, loader, state):
        self._loader, self._state = loader, state

    def __enter__(self):
        self._now = seeding.get_state()
        seeding.set_state(self._state["global"])
        restore_own(self._loader, self._state)

    def __exit__(self, *exc):
        seeding.set_state(self._now)
