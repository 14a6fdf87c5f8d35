"""Every method and plug-in by name, and the way to a method in a file of one's own."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ownview.base.errors import SettingError, UnknownNameError
from ownview.baselines.bpr import BPR
from ownview.baselines.central import Central, OneShot
from ownview.baselines.centrap import CentRAP
from ownview.baselines.ease import EASE
from ownview.baselines.ials import IALS
from ownview.baselines.itemknn import ItemKNN
from ownview.baselines.lightgcn import LightGCN
from ownview.baselines.markov import Markov
from ownview.baselines.mf import MF
from ownview.baselines.ncf import NCF
from ownview.baselines.popularity import Popularity
from ownview.baselines.recent_popularity import RecentPopularity
from ownview.baselines.rp3beta import RP3Beta
from ownview.baselines.sasrec import SASRec
from ownview.baselines.sitting_counts import LaterSittings, SittingStarts
from ownview.baselines.slim import SLIM
from ownview.baselines.slist import SLIST
from ownview.blends.blend import Blend, Part
from ownview.methods.colr import CoLR
from ownview.methods.fcf import FCF
from ownview.methods.fedcia import FedCIA
from ownview.methods.fedease import FedEASE
from ownview.methods.fedem import FedEM
from ownview.methods.fedfast import FedFast
from ownview.methods.fedials import FedIALS
from ownview.methods.fedmf import FedMF
from ownview.methods.fedncf import FedNCF
from ownview.methods.fednext import FedNext
from ownview.methods.fedrap import FedRAP
from ownview.methods.fedrecon import FedRecon
from ownview.methods.fedsasrec import FedSASRec
from ownview.methods.gpfedrec import GPFedRec
from ownview.methods.local_only import LocalOnly
from ownview.methods.perfedrec import PerFedRec
from ownview.methods.pfedclr import PFedCLR
from ownview.methods.pfedgraph import PFedGraph
from ownview.methods.pfedrec import PFedRec
from ownview.plugins.dual_personalisation import DualPersonalisation
from ownview.plugins.elastic_merging import ElasticMerging
from ownview.plugins.late_aggregation import LateAggregation
from ownview.plugins.plgc import PLGC
from ownview.seam.method import Federated
from ownview.seam.plugin import Plugin

_METHODS: tuple[type[Federated], ...] = (
    CoLR, FCF, FedCIA, FedEASE, FedEM, FedFast, FedIALS, FedMF, FedNCF, FedNext, FedRAP, FedRecon, FedSASRec,
    GPFedRec, LocalOnly, PerFedRec, PFedCLR, PFedGraph, PFedRec,
)  # fmt: skip
METHODS: dict[str, type[Federated]] = {cls.name: cls for cls in _METHODS}
BASELINES: dict[str, type[Central]] = {
    cls.name: cls
    for cls in (
        BPR,
        CentRAP,
        EASE,
        IALS,
        ItemKNN,
        LaterSittings,
        LightGCN,
        Markov,
        MF,
        NCF,
        Popularity,
        RecentPopularity,
        RP3Beta,
        SASRec,
        SittingStarts,
        SLIM,
        SLIST,
    )
}
PLUGINS: dict[str, type[Plugin]] = {
    cls.name: cls for cls in (DualPersonalisation, ElasticMerging, LateAggregation, PLGC)
}

Model = Federated | Central | Blend


def find_model(name: str) -> type[Model]:
    """A method or baseline by name, or the one method that a Python file defines."""
    if name.endswith(".py"):
        return _from_file(Path(name))
    known: dict[str, type[Model]] = {**METHODS, **BASELINES, Blend.name: Blend}
    if name.lower() not in known:
        raise UnknownNameError("method", name, [*known, "a .py file"])
    return known[name.lower()]


def find_plugin(name: str) -> type[Plugin]:
    """A plug-in by name."""
    if name not in PLUGINS:
        raise UnknownNameError("plug-in", name, PLUGINS)
    return PLUGINS[name]


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


def enough_rounds(model: Model) -> int | None:
    """Rounds after which nothing changes any more if everybody takes part; None where every round matters."""
    if isinstance(model, Blend):
        named = zip(model.parts, parts_of(model), strict=True)
        each = [1 if Part.read(text).folder else enough_rounds(part) for text, part in named]
        known = [one for one in each if one is not None]
        return max(known) if len(known) == len(each) else None
    if isinstance(model, Federated):
        return model.enough
    return 1 if isinstance(model, OneShot) else None


def _from_file(path: Path) -> type[Federated]:
    if not path.is_file():
        raise SettingError(f"{path}: no such method file")
    spec = importlib.util.spec_from_file_location(f"ownview_user_method_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up to read annotations
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise SettingError(f"{path}: cannot be imported: {type(error).__name__}: {error}") from error
    found = [
        cls
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, Federated) and cls.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise SettingError(
            f"{path}: expected exactly one subclass of ownview.Method or ownview.ReportingMethod, found {len(found)}"
        )
    return found[0]
