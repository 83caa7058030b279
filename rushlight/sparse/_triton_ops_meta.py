"""What tuning found for kernels of a device, under the names that packages look it up by.

This build has no such kernels and ships no findings; what a program tunes is kept while it runs.
"""

import rushlight

__all__ = ["get_meta", "minimize", "update"]

_FOUND: dict = {}


def _device(name):
    return (
        name
        if name is not None
        else (rushlight.cuda.get_device_name() if rushlight.cuda.is_available() else "cpu")
    )


def get_meta(op, key, device_name=None, version=(0, None, 0.5), exact=False):
    """The parameters found for an operator and sizes; None where nothing was found."""
    table = _FOUND.get((op, _device(device_name), tuple(version)), {})
    if exact or not any(part == "*" for part in key):
        return table.get(tuple(key))
    fits = {
        known: value
        for known, value in table.items()
        if len(known) == len(key) and all(wanted in ("*", part) for wanted, part in zip(key, known))
    }
    return fits or None


def update(op, device_name, version, key, value):
    """Keep what was found."""
    _FOUND.setdefault((op, _device(device_name), tuple(version)), {})[tuple(key)] = value


def minimize(
    target_func,
    initial_parameters,
    reference_parameters,
    step_func,
    max_step=2,
    verbose=False,
    all_values=None,
):
    """Parameters that make ``target_func`` least, from the initial ones, a few steps at a time in each.

    Returns the parameters, by how many per cent they beat the reference ones, the least value, and a
    line that says
    how much worse their neighbours are.
    """
    values = {} if all_values is None else all_values

    def measure(parameters):
        key = tuple(sorted(parameters.items()))
        if key not in values:
            values[key] = target_func(parameters)
        return values[key]

    def neighbours(parameters):
        for name in parameters:
            for direction in (-1, 1):
                value = parameters[name]
                for _ in range(max_step):
                    moved = step_func(name, value, direction, parameters)
                    if moved == value:
                        break
                    value = moved
                    yield name, {**parameters, name: value}

    reference = measure(reference_parameters)
    best = dict(initial_parameters)
    least = measure(best)
    improved = True
    while improved:
        improved = False
        for _, candidate in neighbours(best):
            value = measure(candidate)
            if value < least:
                best, least, improved = candidate, value, True
                if verbose:
                    print(f"{least:.6g} at {best}")
                break
    worse = {}
    for name, candidate in neighbours(best):
        worse[name] = min(worse.get(name, float("inf")), measure(candidate))
    lines = [f"{name}: {(value / least - 1) * 100:+.1f} %" for name, value in worse.items() if least]
    gain = (reference / least - 1) * 100 if least else 0.0
    return best, gain, least, "nearest neighbours: " + ", ".join(lines)
