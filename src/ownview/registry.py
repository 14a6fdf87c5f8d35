"""Every method and plug-in by name, and the way to a method in a file of one's own."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import Any, TypeVar

from ownview.base import entry_points
from ownview.base.errors import SettingError, UnknownNameError
from ownview.base.trust import require_trusted
from ownview.baselines.parts.central import Central, OneShot
from ownview.blends.blend import Blend, Part
from ownview.seam.method import Federated
from ownview.seam.plugin import Plugin

Model = Federated | Central | Blend
Kind = TypeVar("Kind", bound=Model)


def _defined(module: ModuleType, kind: type[Kind]) -> list[type[Kind]]:
    """The classes of a kind that a module, or the package with its modules, defines; other imports do not count."""
    every = [cls for _, cls in inspect.getmembers(module, inspect.isclass) if issubclass(cls, kind)]
    return [cls for cls in every if f"{cls.__module__}.".startswith(f"{module.__name__}.")]


def _found_in(package: str, kind: type[Kind]) -> dict[str, type[Kind]]:
    """What the modules of a package define, by name. Classes without a name are there to be inherited from."""
    folder = importlib.import_module(package).__path__
    modules = [importlib.import_module(f"{package}.{one.name}") for one in pkgutil.iter_modules(folder)]
    return {cls.name: cls for module in modules for cls in _defined(module, kind) if "name" in vars(cls)}


METHODS = _found_in("ownview.methods", Federated)
BASELINES = _found_in("ownview.baselines", Central)
PLUGINS = _found_in("ownview.plugins", Plugin)
BLENDS = _found_in("ownview.blends", Blend)
MODELS: dict[str, type[Model]] = {**METHODS, **BASELINES, **BLENDS}


def find_model(name: str) -> type[Model]:
    """A method or baseline by name, or the one method that a Python file defines.

    Raises:
        UntrustedError: the user neither named the file nor trusts it; see `ownview.base.trust`.
    """
    if name.endswith(".py"):
        return _from_file(Path(name), (Federated, Central), "ownview.Method, ReportingMethod, OneShot or InEpochs")
    if name.lower() not in MODELS:
        for group, kind in ((entry_points.METHODS, Federated), (entry_points.BASELINES, Central)):
            if name.lower() in entry_points.named(group):
                _register(name.lower(), _installed(group, name, kind))
                return MODELS[name.lower()]
        offered = (*entry_points.named(entry_points.METHODS), *entry_points.named(entry_points.BASELINES))
        raise UnknownNameError("method", name, [*MODELS, *offered, "a .py file"])
    return MODELS[name.lower()]


def find_plugin(name: str) -> type[Plugin]:
    """A plug-in by name, or the one that a Python file defines."""
    if name.endswith(".py"):
        return _from_file(Path(name), (Plugin,), "ownview.Plugin")
    if name not in PLUGINS and name in entry_points.named(entry_points.PLUGINS):
        PLUGINS[name] = _installed(entry_points.PLUGINS, name, Plugin)
    if name not in PLUGINS:
        raise UnknownNameError("plug-in", name, [*PLUGINS, *entry_points.named(entry_points.PLUGINS), "a .py file"])
    return PLUGINS[name]


def offers_model(name: str) -> bool:
    """Whether there is a model of that name, here or in an installed package, which is not imported for it."""
    groups = (entry_points.METHODS, entry_points.BASELINES)
    return name.lower() in MODELS or any(name.lower() in entry_points.named(group) for group in groups)


def offers_plugin(name: str) -> bool:
    """The same of a plug-in; files are there or not when they are asked for."""
    return name in PLUGINS or name in entry_points.named(entry_points.PLUGINS) or name.endswith(".py")


def _installed(group: str, name: str, kind: type[Any]) -> type[Any]:
    """The class that an installed package offers; it must call itself what the package calls it."""
    found = entry_points.load(group, name)
    if not (isinstance(found, type) and issubclass(found, kind)):
        raise SettingError(f"{name}: entry point {group} is no subclass of ownview.{kind.__name__}; found {found!r}")
    if getattr(found, "name", "").lower() != name.lower():
        raise SettingError(f"{name}: entry point {group} offers {getattr(found, 'name', None)!r}; expected one name")
    return found


def _register(name: str, model: type[Any]) -> None:
    MODELS[name] = model
    (METHODS if issubclass(model, Federated) else BASELINES)[name] = model


def build(name: str, settings: Mapping[str, Any], plugins: Sequence[tuple[str, Mapping[str, Any]]] = ()) -> Model:
    """A model with its settings, wrapped by plug-ins, the first one innermost."""
    model: Model = find_model(name).of(settings)
    for plugin, values in plugins:
        cls = find_plugin(plugin)
        if not isinstance(model, Federated):
            raise SettingError(f"plug-in {plugin} needs a federated method; {model.name} is not federated")
        model = cls.around(model, values)
    return model


def parts_of(blend: Blend) -> list[Model]:
    """The models that are blended."""
    named = [Part.read(text) for text in blend.parts]
    found = [build(part.method, part.settings) for part in named]
    if any(isinstance(part, Blend) for part in found):
        raise SettingError(f"blend setting parts={blend.parts}: a blend has no blends for parts")
    return found


def enough_rounds(model: Model, *, accounted: bool = False) -> int | None:
    """Rounds after which nothing changes any more if everybody takes part; None where every round matters.

    Args:
        model: any.
        accounted: whether what leaves clients is under a budget, for which some methods have a form of their own.
    """
    if isinstance(model, Blend):
        named = zip(model.parts, parts_of(model), strict=True)
        each = [1 if Part.read(text).folder else enough_rounds(part) for text, part in named]
        known = [one for one in each if one is not None]
        return max(known) if len(known) == len(each) else None
    if isinstance(model, Federated):
        return len(model.releases) if accounted and model.releases else model.enough
    return 1 if isinstance(model, OneShot) else None


def _from_file(path: Path, kinds: tuple[type[Any], ...], expected: str) -> type[Any]:
    if not path.is_file():
        raise SettingError(f"{path}: no such method file")
    content = path.read_bytes()
    require_trusted(path, content)
    module = ModuleType(f"ownview_user_method_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up to read annotations
    try:
        # Exactly what was trusted: an import would prefer a compiled file that lies beside it.
        exec(compile(content, str(path), "exec"), module.__dict__)
    except (Exception, SystemExit) as error:
        lines = [call.lineno for call in extract_tb(error.__traceback__) if call.filename == str(path)]
        where = f", line {lines[-1]}" if lines else ""
        raise SettingError(f"{path}{where}: cannot be imported: {type(error).__name__}: {error}") from error
    found: list[type[Any]] = [one for kind in kinds for one in _defined(module, kind)]
    found = [one for one in found if (Plugin in kinds) == issubclass(one, Plugin) and not inspect.isabstract(one)]
    if len(found) != 1:
        names = f" ({', '.join(one.__name__ for one in found)})" if found else ""
        raise SettingError(f"{path}: expected exactly one subclass of {expected}, found {len(found)}{names}")
    return found[0]
