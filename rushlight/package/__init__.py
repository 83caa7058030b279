"""Packages: models in one file together with the code of their classes.

``with PackageExporter("model.pt") as exporter`` says of each module that the code uses what becomes of it:
its source goes along (`intern`), the reader has it (`extern`), or nothing needs it (`mock`); `save_pickle`
adds objects. `PackageImporter("model.pt").load_pickle(...)` gives them back, with classes from the package's
own modules, beside others of the same names. A package holds code: load none that you do not trust."""

from rushlight.package.analyze.is_from_package import is_from_package
from rushlight.package.file_structure_representation import Directory
from rushlight.package.glob_group import GlobGroup
from rushlight.package.importer import (
    Importer,
    ObjMismatchError,
    ObjNotFoundError,
    OrderedImporter,
    sys_importer,
)
from rushlight.package.package_exporter import EmptyMatchError, PackageExporter, PackagingError
from rushlight.package.package_importer import PackageImporter

__all__ = [
    "Directory",
    "EmptyMatchError",
    "GlobGroup",
    "Importer",
    "ObjMismatchError",
    "ObjNotFoundError",
    "OrderedImporter",
    "PackageExporter",
    "PackageImporter",
    "PackagingError",
    "is_from_package",
    "sys_importer",
]
