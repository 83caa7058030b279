"""Pre-trained models by URL or from repositories with a ``hubconf.py``.

Downloads go to ``get_dir()`` through a temporary file, so that an interrupted one leaves nothing behind; a
file name that contains a hash, as in ``resnet18-5c106cde.pth``, is checked against it."""

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import urllib.error
import urllib.request
import warnings
import zipfile
from urllib.parse import urlparse
from urllib.request import urlopen  # noqa: F401 (programs replace it)

import rushlight

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
READ_DATA_CHUNK = 128 * 1024
MODULE_HUBCONF = "hubconf.py"
VAR_DEPENDENCY = "dependencies"
_trusted_owners = ("facebookresearch", "facebookincubator", "pytorch", "fairinternal")
_hub_dir = None


def _get_torch_home():
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.getenv("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """The folder of downloads: what `set_dir` was given, ``$TORCH_HOME/hub`` or ``~/.cache/torch/hub``."""
    return _hub_dir if _hub_dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d) -> None:
    """Sets the folder of downloads."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


class _NoBar:
    """What `tqdm` is where that package is not installed: counts, and shows nothing."""

    def __init__(self, iterable=(), **options):
        self.iterable = iterable
        self.n = 0

    def __iter__(self):
        return iter(self.iterable)

    def update(self, n=1):
        self.n += n

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None


def __getattr__(name):
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from tqdm import tqdm
    except ImportError:
        return _NoBar
    return tqdm


def _bar(total, shown):
    """A bar that counts bytes, where tqdm is installed and it is wanted."""
    bar = __getattr__("tqdm")
    return bar(total=total, disable=not shown, unit="B", unit_scale=True, unit_divisor=1024)


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Downloads `url` to the file `dst`.

    With `hash_prefix` the SHA-256 of the bytes must begin with it; ``RuntimeError`` otherwise, and no
    file."""
    request = urllib.request.Request(url, headers={"User-Agent": "torch.hub"})
    dst = os.path.expanduser(dst)
    folder = os.path.dirname(os.path.abspath(dst))
    digest = hashlib.sha256()
    with urllib.request.urlopen(request) as response:
        length = response.headers.get("Content-Length")
        part = tempfile.NamedTemporaryFile(dir=folder, suffix=".partial", delete=False)
        try:
            with part, _bar(int(length) if length else None, progress) as bar:
                while chunk := response.read(READ_DATA_CHUNK):
                    part.write(chunk)
                    digest.update(chunk)
                    bar.update(len(chunk))
            found = digest.hexdigest()
            if hash_prefix is not None and not found.startswith(hash_prefix):
                raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{found}")')
            shutil.move(part.name, dst)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.remove(part.name)


def _legacy_zip(filename, model_dir, map_location, weights_only):
    """The one file inside a zip that is not one of ours."""
    with zipfile.ZipFile(filename) as archive:
        members = archive.infolist()
        if len(members) != 1:
            raise RuntimeError("Only one file(not dir) is allowed in the zipfile")
        archive.extractall(model_dir)
        extracted = os.path.join(model_dir, members[0].filename)
    return rushlight.load(extracted, map_location=map_location, weights_only=weights_only)


def _is_legacy_zip(filename):
    if not zipfile.is_zipfile(filename):
        return False
    with zipfile.ZipFile(filename) as archive:
        return not any(name.endswith(("/data.pkl", "/constants.pkl")) for name in archive.namelist())


def load_state_dict_from_url(
    url,
    model_dir=None,
    map_location=None,
    progress=True,
    check_hash=False,
    file_name=None,
    weights_only=True,
):
    """Loads a file saved with ``save``, downloading it first unless `model_dir` (``get_dir()/checkpoints``)
    has it.

    With `check_hash` the file's name must contain the beginning of its SHA-256. Unlike PyTorch's, loading
    executes no code from the file unless ``weights_only=False``."""
    model_dir = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(model_dir, exist_ok=True)
    filename = file_name if file_name is not None else os.path.basename(urlparse(url).path)
    cached = os.path.join(model_dir, filename)
    if not os.path.exists(cached):
        sys.stdout.write(f'Downloading: "{url}" to {cached}\n')
        match = HASH_REGEX.search(filename) if check_hash else None
        download_url_to_file(url, cached, match.group(1) if match else None, progress=progress)
    if _is_legacy_zip(cached):
        return _legacy_zip(cached, model_dir, map_location, weights_only)
    return rushlight.load(cached, map_location=map_location, weights_only=weights_only)


# --- repositories ---------------------------------------------------------------------------------


def _parse_repo(github):
    """Owner, name and branch of ``owner/name[:branch]``."""
    info, _, ref = github.partition(":")
    owner, slash, name = info.partition("/")
    if not slash or not name:
        raise ValueError(f"hub: expected a repository as 'owner/name[:ref]', got {github!r}")
    return owner, name, ref or None


def _default_branch(owner, name):
    for branch in ("main", "master"):
        try:
            with urllib.request.urlopen(f"https://github.com/{owner}/{name}/tree/{branch}/"):
                return branch
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
        except urllib.error.URLError as error:
            return _cached_branch(owner, name, error)
    raise ValueError(f"hub: {owner}/{name} has no branch 'main' or 'master'; name one as 'owner/name:ref'")


def _cached_branch(owner, name, error):
    """Without a connection: the branch that was downloaded before."""
    for branch in ("main", "master"):
        if os.path.exists(os.path.join(get_dir(), f"{owner}_{name}_{branch}")):
            return branch
    raise RuntimeError(
        "It looks like there is no internet connection and the repo could not be found in the cache "
        f"({get_dir()})"
    ) from error


def _check_trust(owner, name, trust_repo):
    """Code of a repository runs here: ask for strangers' unless `trust_repo` settles it."""
    path = os.path.join(get_dir(), "trusted_list")
    key = f"{owner}_{name}"
    trusted = []
    if os.path.exists(path):
        with open(path) as file:
            trusted = [line.strip() for line in file]
    if trust_repo is True or key in trusted or owner in _trusted_owners:
        known = True
    elif trust_repo is None:
        warnings.warn(
            f"You are about to download and run code from an untrusted repository ({owner}/{name}); "
            "pass trust_repo=True to silence this, or trust_repo='check' to be asked",
            stacklevel=4,
        )
        return
    else:
        question = f"{owner}/{name} is not in the list of trusted repositories. Run its code? (y/N)"
        answer = input(question)
        known = answer.lower() in ("y", "yes")
        if not known:
            raise Exception("Untrusted repository.")  # noqa: TRY002 - PyTorch's type
    if known and key not in trusted:
        with open(path, "a") as file:
            file.write(key + "\n")


def _fetch(github, force_reload, verbose, trust_repo):
    """The folder of a repository, downloaded unless it is there."""
    owner, name, ref = _parse_repo(github)
    os.makedirs(get_dir(), exist_ok=True)
    _check_trust(owner, name, trust_repo)
    ref = ref or _default_branch(owner, name)
    folder = os.path.join(get_dir(), "_".join([owner, name, ref.replace("/", "_")]))
    if os.path.exists(folder) and not force_reload:
        if verbose:
            sys.stderr.write(f"Using cache found in {folder}\n")
        return folder
    with tempfile.TemporaryDirectory(dir=get_dir()) as work:
        archive = os.path.join(work, "repository.zip")
        download_url_to_file(f"https://github.com/{owner}/{name}/zipball/{ref}", archive, progress=False)
        with zipfile.ZipFile(archive) as zipped:
            top = zipped.namelist()[0].split("/")[0]
            zipped.extractall(work)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(os.path.join(work, top), folder)
    return folder


@contextlib.contextmanager
def _on_path(folder):
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)


def _hubconf(folder):
    """The module ``hubconf.py`` of a folder; ``RuntimeError`` names dependencies that are not installed."""
    with _on_path(folder):
        spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, os.path.join(folder, MODULE_HUBCONF))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    missing = [
        package
        for package in getattr(module, VAR_DEPENDENCY, None) or []
        if importlib.util.find_spec(package) is None
    ]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _entry(module, name):
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    function = getattr(module, name, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def _folder_of(repo_or_dir, source, force_reload, verbose, trust_repo):
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    return repo_or_dir if source == "local" else _fetch(repo_or_dir, force_reload, verbose, trust_repo)


def load(
    repo_or_dir,
    model,
    *args,
    source="github",
    trust_repo=None,
    force_reload=False,
    verbose=True,
    skip_validation=False,
    **kwargs,
):
    """``model(*args, **kwargs)`` of the ``hubconf.py`` in a GitHub repository ``owner/name[:ref]`` or a
    local folder."""
    folder = _folder_of(repo_or_dir, source, force_reload, verbose, trust_repo)
    with _on_path(folder):
        return _entry(_hubconf(folder), model)(*args, **kwargs)


def list(
    github, force_reload=False, skip_validation=False, trust_repo=None, verbose=True, *, source="github"
):  # noqa: A001
    """The names of a repository's entry points."""
    module = _hubconf(_folder_of(github, source, force_reload, verbose, trust_repo))
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo=None, *, source="github"):  # noqa: A001
    """The documentation of one entry point."""
    return _entry(_hubconf(_folder_of(github, source, force_reload, True, trust_repo)), model).__doc__
