"""The list by which `pip uninstall rushlight` knows what to remove: what the alias wrote is on it too.

An upgrade uninstalls the old version, and so turns the alias off.
"""

import importlib.metadata
import os


def _path(site_packages):
    """The RECORD of the installed distribution; None where Rushlight was not installed by pip there."""
    package = __package__.partition(".")[0]
    for distribution in importlib.metadata.distributions(name=package, path=[site_packages]):
        path = os.path.join(site_packages, f"{package}-{distribution.version}.dist-info", "RECORD")
        if os.path.exists(path):
            return path
    return None


def update(site_packages, files):
    """Let the list hold these of the alias's files, absolute paths, and no others."""
    record = _path(site_packages)
    if record is None:
        return
    from rushlight._command import alias, alias_stubs

    with open(record, encoding="utf-8", newline="") as file:
        lines = file.readlines()
    kept = [line for line in lines if not line.startswith((f"{alias.PTH_NAME},", f"{alias_stubs.FOLDER}/"))]
    ours = [f"{os.path.relpath(path, site_packages).replace(os.sep, '/')},,\n" for path in files]
    with open(f"{record}.new", "w", encoding="utf-8", newline="") as file:
        file.writelines(kept + sorted(ours))
    os.replace(f"{record}.new", record)
