"""Ownview: personalised federated recommendation, measured honestly.

import ownview as ov

data = ov.load("goodbooks")
run = ov.run(ov.PFedRec(), data, rounds=50)
run.metrics["HR@10"]
run.recommend(user=data.users[0], k=10)
"""

from ownview.base.errors import OwnviewError
from ownview.base.version import __version__
from ownview.baselines.bpr import BPR
from ownview.baselines.centrap import CentRAP
from ownview.baselines.ease import EASE
from ownview.baselines.ials import IALS
from ownview.baselines.itemknn import ItemKNN
from ownview.baselines.lightgcn import LightGCN
from ownview.baselines.mf import MF
from ownview.baselines.ncf import NCF
from ownview.baselines.popularity import Popularity
from ownview.baselines.rp3beta import RP3Beta
from ownview.baselines.sasrec import SASRec
from ownview.baselines.slim import SLIM
from ownview.baselines.slist import SLIST
from ownview.config.search import Between, OneOf
from ownview.config.settings import setting
from ownview.data import Interactions, load, read
from ownview.evaluation.protocol import HONEST, PAPER, Protocol
from ownview.federation.options import FederationOptions
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
from ownview.runs.api import compare, run
from ownview.runs.experiment import Experiment
from ownview.runs.run import Run, open_run, resume
from ownview.runs.skew import skew
from ownview.seam.client import Client, Patch, Product, Reporting, Summand, Summands, Training
from ownview.seam.cohorts import Cohort, Seen
from ownview.seam.initial import Constant, Normal, Orthonormal, Uniform
from ownview.seam.method import Federated, Method, ReportingMethod, cross_entropy
from ownview.seam.mixing import Known, Mixing
from ownview.seam.optimizers import Adam, Sgd
from ownview.seam.plugin import Plugin
from ownview.seam.roles import (
    Param,
    chance,
    fresh,
    held,
    history,
    kept,
    personal,
    private,
    received,
    reported,
    shared,
    table,
    timeline,
)
from ownview.seam.server import Arrived, Draw, Mean, RowMean, Server, ServerStep, Sums
from ownview.seam.training import Batch, BeginWith, Context, Opening, Params, Phase, Shrink, Step, World

__all__ = [
    "BPR",
    "EASE",
    "FCF",
    "HONEST",
    "IALS",
    "MF",
    "NCF",
    "PAPER",
    "PLGC",
    "SLIM",
    "SLIST",
    "Adam",
    "Arrived",
    "Batch",
    "BeginWith",
    "Between",
    "CentRAP",
    "Client",
    "CoLR",
    "Cohort",
    "Constant",
    "Context",
    "Draw",
    "DualPersonalisation",
    "ElasticMerging",
    "Experiment",
    "FedCIA",
    "FedEASE",
    "FedEM",
    "FedFast",
    "FedIALS",
    "FedMF",
    "FedNCF",
    "FedNext",
    "FedRAP",
    "FedRecon",
    "FedSASRec",
    "Federated",
    "FederationOptions",
    "GPFedRec",
    "Interactions",
    "ItemKNN",
    "Known",
    "LateAggregation",
    "LightGCN",
    "LocalOnly",
    "Mean",
    "Method",
    "Mixing",
    "Normal",
    "OneOf",
    "Opening",
    "Orthonormal",
    "OwnviewError",
    "PFedCLR",
    "PFedGraph",
    "PFedRec",
    "Param",
    "Params",
    "Patch",
    "PerFedRec",
    "Phase",
    "Plugin",
    "Popularity",
    "Product",
    "Protocol",
    "RP3Beta",
    "Reporting",
    "ReportingMethod",
    "RowMean",
    "Run",
    "SASRec",
    "Seen",
    "Server",
    "ServerStep",
    "Sgd",
    "Shrink",
    "Step",
    "Summand",
    "Summands",
    "Sums",
    "Training",
    "Uniform",
    "World",
    "__version__",
    "chance",
    "compare",
    "cross_entropy",
    "fresh",
    "held",
    "history",
    "kept",
    "load",
    "open_run",
    "personal",
    "private",
    "read",
    "received",
    "reported",
    "resume",
    "run",
    "setting",
    "shared",
    "skew",
    "table",
    "timeline",
]

_MOVED = {
    "Gathering": "ReportingMethod, whose `params` say by role what clients and server have",
    "History": "history(), a role: the client sees its items as a table of 0 and 1",
    "OwnHistory": "history(), a role",
    "Value": "received(...) for what clients get and held(...) for what stays on the server",
}


def __getattr__(name: str) -> object:
    """Names of earlier versions say what has taken their place."""
    if name in _MOVED:
        raise AttributeError(f"ownview.{name} is now ownview.{_MOVED[name]}; see CHANGELOG.md")
    raise AttributeError(f"module 'ownview' has no attribute {name!r}")
