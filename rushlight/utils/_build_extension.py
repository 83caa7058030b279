"""The setuptools command that builds extensions; setuptools is loaded only for it."""

from setuptools.command.build_ext import build_ext

from rushlight.utils.cpp_extension import _compile_flags

__all__ = ["BuildExtension"]


class BuildExtension(build_ext):
    """``cmdclass={"build_ext": BuildExtension}``: compiles as C++20, against this package."""

    @classmethod
    def with_options(cls, **options):
        """The command with options, such as ``use_ninja``, which change nothing here."""

        class Configured(cls):
            def __init__(self, *args, **kwargs):
                super().__init__(*args, **{**kwargs, **options})

        return Configured

    def __init__(self, *args, **kwargs):
        self.use_ninja = kwargs.pop("use_ninja", False)
        self.no_python_abi_suffix = kwargs.pop("no_python_abi_suffix", False)
        super().__init__(*args, **kwargs)

    def build_extensions(self):
        for extension in self.extensions:
            given = extension.extra_compile_args
            flags = given.get("cxx", []) if isinstance(given, dict) else list(given)
            name = extension.name.rpartition(".")[2]
            define = f"-DTORCH_EXTENSION_NAME={name}"
            extension.extra_compile_args = [*_compile_flags(), define, *flags]
        super().build_extensions()

    def get_ext_filename(self, ext_name):
        path = super().get_ext_filename(ext_name)
        if not self.no_python_abi_suffix:
            return path
        stem, *_, suffix = path.split(".")
        return f"{stem}.{suffix}"
