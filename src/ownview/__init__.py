"""Ownview: personalised federated recommendation, measured honestly.

import ownview as ov

data = ov.load("goodbooks")
run = ov.run(ov.PFedRec(), data, rounds=50)
run.metrics["HR@10"]
run.recommend(user=data.users[0], k=10)
"""

from ownview.api import compare, run
from ownview.baselines.centrap import CentRAP
from ownview.baselines.popularity import Popularity
from ownview.cohorts import Cohort, Seen
from ownview.data import Interactions, load, read
from ownview.engine.options import FederationOptions
from ownview.errors import OwnviewError
from ownview.evaluation.protocol import HONEST, PAPER, Protocol
from ownview.experiment import Experiment
from ownview.initial import Constant, History, Normal, Uniform
from ownview.method import Method, Plugin, cross_entropy
from ownview.methods.fedem import FedEM
from ownview.methods.fedfast import FedFast
from ownview.methods.fedmf import FedMF
from ownview.methods.fedncf import FedNCF
from ownview.methods.fedrap import FedRAP
from ownview.methods.gpfedrec import GPFedRec
from ownview.methods.local_only import LocalOnly
from ownview.methods.perfedrec import PerFedRec
from ownview.methods.pfedclr import PFedCLR
from ownview.methods.pfedgraph import PFedGraph
from ownview.methods.pfedrec import PFedRec
from ownview.mixing import Known, Mixing
from ownview.optimizers import Adam, Sgd
from ownview.plugins.dual_personalisation import DualPersonalisation
from ownview.plugins.elastic_merging import ElasticMerging
from ownview.plugins.late_aggregation import LateAggregation
from ownview.plugins.plgc import PLGC
from ownview.runs.run import Run, open_run, resume
from ownview.runs.watching import skew
from ownview.settings import setting
from ownview.types import Batch, Context, Opening, Param, Params, Phase, Shrink, Step, World
from ownview.version import __version__

__all__ = [
    "HONEST", "PAPER", "PLGC", "Adam", "Batch", "CentRAP", "Cohort", "Constant", "Context", "DualPersonalisation",
    "ElasticMerging", "Experiment", "FedEM", "FedFast", "FedMF", "FedNCF", "FedRAP", "FederationOptions",
    "GPFedRec", "History", "Interactions", "Known", "LateAggregation", "LocalOnly", "Method", "Mixing", "Normal",
    "Opening", "OwnviewError", "PFedCLR", "PFedGraph", "PFedRec", "Param", "Params", "PerFedRec", "Phase", "Plugin",
    "Popularity", "Protocol", "Run", "Seen", "Sgd", "Shrink", "Step", "Uniform", "World", "__version__", "compare",
    "cross_entropy", "load", "open_run", "read", "resume", "run", "setting", "skew",
]  # fmt: skip
