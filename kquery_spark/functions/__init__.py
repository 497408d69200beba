"""Every function: one registry entry each, read by all frontends and the kernel compiler.

Importing the package imports all of its modules, so that those with entries fill the registries.
"""

from importlib import import_module as _import_module
from pkgutil import walk_packages as _walk_packages

for _module in _walk_packages(__path__, f"{__name__}."):
    _import_module(_module.name)
