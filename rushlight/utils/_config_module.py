"""Modules of settings: changed for a while, saved, compared with their defaults.

`install_config_module` turns a module whose names are settings into a `ConfigModule`. Values lie in the
module's dictionary, so reading one costs what any module's name costs."""

import builtins
import contextlib
import copy
import os
import pickle
import re
import sys
import types
import warnings
from typing import Any

_UNSET_SENTINEL = object()
CONFIG_TYPES = (int, float, bool, type(None), str, list, set, tuple, dict)
COMPILE_IGNORED_MARKER = "@compile_ignored"


class _Config:
    """A setting with more than a default value; `Config` makes it."""

    def __init__(
        self,
        default=_UNSET_SENTINEL,
        justknob=None,
        env_name_default=None,
        env_name_force=None,
        value_type=None,
        alias=None,
        deprecated=False,
        deprecation_message=None,
    ):
        self.default, self.justknob, self.alias, self.value_type = default, justknob, alias, value_type
        self.env_name_default, self.env_name_force = _names(env_name_default), _names(env_name_force)
        self.deprecated, self.deprecation_message = deprecated, deprecation_message
        if justknob is not None and type(default) is not bool:
            raise AssertionError(f"justknobs only support booleans, {default} is not a boolean")
        if alias is not None and (default, justknob, env_name_default, env_name_force) != (
            _UNSET_SENTINEL, None, None, None,
        ):  # fmt: skip
            raise AssertionError("if alias is set, none of {default, justknob and env var} can be set")


def _names(names):
    return [names] if isinstance(names, str) else names


def Config(default=_UNSET_SENTINEL, **details):  # noqa: N802 - PyTorch's name
    """A setting whose default may come from the environment, or that is another setting's alias.

    Args:
        default: the value where nothing else says one.
        env_name_default (str or list): variables of the environment that replace the default.
        env_name_force (str or list): variables that win over what the program sets.
        alias (str): the full name of a setting to read and write instead.
        deprecated (bool), deprecation_message (str): warn when it is used.
    """
    return _Config(default, **details)


def _read_env_variable(name):
    """The variable as bool for "1" and "0", else as text; None if it is not there."""
    value = os.environ.get(name)
    return True if value == "1" else False if value == "0" else value


def _from_environment(names):
    for name in names or ():
        value = _read_env_variable(name)
        if value is not None:
            return value
    return _UNSET_SENTINEL


class _ConfigEntry:
    """One setting: its default, and what the program set."""

    def __init__(self, space, name, config, declared):
        self._space, self._name = space, name
        self.value_type = config.value_type or (type(config.default) if declared is None else declared)
        self.alias, self.deprecated, self.deprecation_message = (
            config.alias,
            config.deprecated,
            config.deprecation_message,
        )
        default = _from_environment(config.env_name_default)
        self.default = config.default if default is _UNSET_SENTINEL else default
        self.forced = _from_environment(config.env_name_force)
        self._override = _UNSET_SENTINEL
        self._show()

    @property
    def watched(self):
        """Whether reading takes more than a look into the module's dictionary."""
        return self.alias is not None or self.deprecated

    def value(self):
        for value in (self.forced, self._override):
            if value is not _UNSET_SENTINEL:
                return value
        return self.default

    def _show(self):
        if not self.watched:
            value = self.value()
            self._space[self._name] = copy.deepcopy(value) if value is self.default else value

    @property
    def user_override(self):
        return self._override

    @user_override.setter
    def user_override(self, value):
        self._override = value
        self._show()


class SubConfigProxy:
    """The settings of a class inside of a module of settings, `config.group.name`."""

    def __init__(self, config, prefix):
        vars(self).update(_owner=config, _prefix=prefix)

    def __getattr__(self, name):
        return getattr(self._owner, self._prefix + name)

    def __setattr__(self, name, value):
        setattr(self._owner, self._prefix + name, value)

    def __delattr__(self, name):
        delattr(self._owner, self._prefix + name)


class _Patch(contextlib.ContextDecorator):
    """Settings that hold inside of a ``with`` block, or of a decorated function, class or test case."""

    def __init__(self, config, changes):
        self.config, self.changes, self.before = config, changes, []

    def __enter__(self):
        config = self.config
        self.before.append({name: config._current(name) for name in self.changes})
        for name, value in self.changes.items():
            setattr(config, name, value)

    def __exit__(self, *error):
        for name, value in self.before.pop().items():
            if value is _UNSET_SENTINEL:
                self.config._forget(name)
            else:
                setattr(self.config, name, value)

    def __call__(self, fn):
        if not isinstance(fn, type):
            return super().__call__(fn)
        return _patched_class(fn, self)


def _patched_class(cls, patch):
    """A test case whose tests all run with the settings changed."""
    set_up: Any = getattr(cls, "setUpClass", None)
    tear_down: Any = getattr(cls, "tearDownClass", None)
    if set_up is None:
        raise TypeError(f"config.patch decorates functions and test cases, not the class {cls.__name__}")

    def enter(owner):
        patch.__enter__()
        try:
            set_up.__func__(owner)
        except BaseException:
            patch.__exit__()
            raise

    def leave(owner):
        try:
            tear_down.__func__(owner)
        finally:
            patch.__exit__()

    cls.setUpClass, cls.tearDownClass = classmethod(enter), classmethod(leave)
    return cls


class ConfigModule(types.ModuleType):
    """A module of settings."""

    def __getattr__(self, name):
        entry = vars(self).get("_config", {}).get(name)
        if entry is None:
            raise AttributeError(f"{self.__name__}.{name} does not exist")
        self._warn_if_deprecated(name, entry)
        if entry.alias is None:
            return entry.value()
        module, _, setting = entry.alias.rpartition(".")
        return getattr(_module(module), setting)

    def __setattr__(self, name, value):
        space = vars(self)
        entry = space["_config"].get(name)
        if entry is None:
            if name in space["_bypass_keys"] or (name.startswith("__") and name.endswith("__")):
                return super().__setattr__(name, value)
            if not space["_open"]:
                raise AttributeError(f"{self.__name__}.{name} does not exist")
            entry = space["_config"][name] = _ConfigEntry(space, name, _Config(value), None)
        self._warn_if_deprecated(name, entry)
        if entry.alias is None:
            entry.user_override = value
        else:
            module, _, setting = entry.alias.rpartition(".")
            setattr(_module(module), setting, value)
        if name not in space["_compile_ignored_keys"]:
            space["_hash_digest"] = None

    def __delattr__(self, name):
        self._config[name].user_override = _UNSET_SENTINEL

    def _forget(self, name):
        """Take away a setting that did not exist before it was patched."""
        self._config.pop(name, None)
        vars(self).pop(name, None)

    def _current(self, name):
        if name not in self._config:
            if self._open:
                return _UNSET_SENTINEL
            raise AttributeError(f"{self.__name__} has no setting {name!r}")
        return getattr(self, name) if self._config[name].watched else vars(self)[name]

    def _warn_if_deprecated(self, name, entry):
        if entry.deprecated:
            text = entry.deprecation_message or "is deprecated"
            warnings.warn(f"{self.__name__}.{name} {text}", FutureWarning, stacklevel=3)

    def _is_default(self, name):
        """Whether a setting has its default value, however it came to it."""
        return self._current(name) == self._config[name].default

    def _get_dict(self, ignored_keys=(), ignored_prefixes=(), skip_default=False):
        chosen = {}
        for name, entry in self._config.items():
            if entry.alias is not None or entry.deprecated or name in (ignored_keys or ()):
                continue
            if any(name.startswith(prefix) for prefix in ignored_prefixes or ()):
                continue
            if not (skip_default and self._is_default(name)):
                chosen[name] = copy.deepcopy(self._current(name))
        return chosen

    def get_type(self, config_name):
        """The declared type of a setting."""
        return self._config[config_name].value_type

    def to_dict(self):
        """All settings and their values, copied."""
        return self._get_dict()

    def shallow_copy_dict(self):
        return self.to_dict()

    def get_config_copy(self):
        return self.to_dict()

    def get_serializable_config_copy(self):
        return self._get_dict(ignored_keys=vars(self).get("_save_config_ignore"))

    def save_config(self):
        """The settings pickled, for `load_config`."""
        return pickle.dumps(self.get_serializable_config_copy(), protocol=2)

    def save_config_portable(self, *, ignore_private_configs=True):
        """The settings that may be carried to another machine."""
        prefixes = list(vars(self).get("_cache_config_ignore_prefix", ()))
        return self._get_dict(ignored_prefixes=[*prefixes, "_"] if ignore_private_configs else prefixes)

    def load_config(self, maybe_pickled_config):
        """Set what `save_config`, `save_config_portable` or `to_dict` gave."""
        saved = maybe_pickled_config
        for name, value in (saved if isinstance(saved, dict) else pickle.loads(saved)).items():
            if name in self._config:
                setattr(self, name, value)

    def codegen_config(self):
        """Statements that set what differs from its default."""
        ignored = [*vars(self).get("_save_config_ignore", ())]
        changed = self._get_dict(ignored_keys=ignored, skip_default=True)
        name = self.__name__
        return "\n".join(f"{name}.{setting} = {value!r}" for setting, value in changed.items())

    def get_hash(self):
        """A digest of the settings that matter to compiled code."""
        if self._hash_digest is None:
            import hashlib

            text = repr(sorted(self._get_dict(ignored_keys=self._compile_ignored_keys).items()))
            digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()
            vars(self)["_hash_digest"] = digest
        return self._hash_digest

    def patch(self, arg1=None, arg2=_UNSET_SENTINEL, **kwargs):
        """Change settings for a while: ``patch("verbose", True)``, ``patch(verbose=True)``, ``patch({...})``.

        What it gives is a context manager, and decorates functions and test cases."""
        changes = dict(kwargs)
        if isinstance(arg1, dict):
            changes = {**arg1, **changes}
        elif arg1 is not None:
            if arg2 is _UNSET_SENTINEL:
                raise AssertionError(f"config.patch({arg1!r}) needs a value for the setting")
            changes[arg1] = arg2
        for name in changes:
            self._current(name)
        return _Patch(self, changes)

    def _make_closure_patcher(self, **changes):
        """A function that makes the changes and gives the function that takes them back."""

        def change():
            patch = _Patch(self, changes)
            patch.__enter__()
            return patch.__exit__

        return change


def _module(name):
    from importlib import import_module

    return sys.modules.get(name) or import_module(name)


def install_config_module(module, open=False, more=()):  # noqa: A002
    """Make the names of a module settings, and those of `more`: (full name, default, declared type or None).
    An `open` module takes names that it does not know."""
    space = vars(module)
    entries = {}
    bypass = {"_hash_digest", "_bypass_keys", "_config", "_open", "_compile_ignored_keys"}
    space.update(_config=entries, _bypass_keys=bypass, _hash_digest=None, _open=open)
    space["_compile_ignored_keys"] = _compile_ignored(module)

    def collect(names, annotations, prefix):
        for name, value in [*names.items()]:
            if name in bypass or name.startswith("__") or name == "TYPE_CHECKING":
                continue
            if isinstance(value, type) and value.__module__ == module.__name__:
                collect(vars(value), vars(value).get("__annotations__", {}), f"{prefix}{name}.")
                if not prefix:
                    space[name] = SubConfigProxy(module, f"{name}.")
                    bypass.add(name)
            elif isinstance(value, (_Config, *CONFIG_TYPES)):
                config = value if isinstance(value, _Config) else _Config(value)
                declared = annotations.get(name)
                if prefix == "" and config.alias is not None or config.deprecated:
                    space.pop(name, None)  # reading them goes through __getattr__
                entries[prefix + name] = _ConfigEntry(space, prefix + name, config, declared)

    collect(dict(space), space.get("__annotations__", {}), "")
    for name, default, declared in more:
        if name in entries:
            continue
        entries[name] = _ConfigEntry(space, name, _Config(default), declared)
        group = name.partition(".")[0]
        if group != name and group not in bypass:
            space[group] = SubConfigProxy(module, f"{group}.")
            bypass.add(group)
    module.__class__ = ConfigModule


def _compile_ignored(module):
    """Names of settings that a comment marks as of no effect on compiled code."""
    if not getattr(module, "__file__", None):
        return set()
    try:
        with builtins.open(module.__file__, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return set()
    if COMPILE_IGNORED_MARKER not in text:
        return set()
    above = re.findall(rf"^\s*#.*{COMPILE_IGNORED_MARKER}.*\n\s*(\w+)", text, re.M)
    return {*above, *re.findall(rf"^\s*(\w+)\b.*=.*#.*{COMPILE_IGNORED_MARKER}", text, re.M)}
