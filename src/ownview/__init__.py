"""Ownview: personalised federated recommendation, measured honestly.

import ownview as ov

data = ov.load("goodbooks")
run = ov.run(ov.PFedRec(), data, rounds=50)
run.metrics["HR@10"]
run.recommend(user=data.users[0], k=10)
"""

from ownview.base.errors import OwnviewError as OwnviewError
from ownview.base.version import __version__ as __version__
from ownview.baselines.bpr import BPR as BPR
from ownview.baselines.centrap import CentRAP as CentRAP
from ownview.baselines.ease import EASE as EASE
from ownview.baselines.ials import IALS as IALS
from ownview.baselines.itemknn import ItemKNN as ItemKNN
from ownview.baselines.lightgcn import LightGCN as LightGCN
from ownview.baselines.mf import MF as MF
from ownview.baselines.ncf import NCF as NCF
from ownview.baselines.popularity import Popularity as Popularity
from ownview.baselines.rp3beta import RP3Beta as RP3Beta
from ownview.baselines.sasrec import SASRec as SASRec
from ownview.baselines.slim import SLIM as SLIM
from ownview.baselines.slist import SLIST as SLIST
from ownview.config.search import Between as Between
from ownview.config.search import OneOf as OneOf
from ownview.config.settings import setting as setting
from ownview.data import Interactions as Interactions
from ownview.data import load as load
from ownview.data import read as read
from ownview.evaluation.protocol import HONEST as HONEST
from ownview.evaluation.protocol import PAPER as PAPER
from ownview.evaluation.protocol import Protocol as Protocol
from ownview.federation.options import FederationOptions as FederationOptions
from ownview.methods.colr import CoLR as CoLR
from ownview.methods.fcf import FCF as FCF
from ownview.methods.fedcia import FedCIA as FedCIA
from ownview.methods.fedease import FedEASE as FedEASE
from ownview.methods.fedem import FedEM as FedEM
from ownview.methods.fedfast import FedFast as FedFast
from ownview.methods.fedials import FedIALS as FedIALS
from ownview.methods.fedmf import FedMF as FedMF
from ownview.methods.fedncf import FedNCF as FedNCF
from ownview.methods.fednext import FedNext as FedNext
from ownview.methods.fedrap import FedRAP as FedRAP
from ownview.methods.fedrecon import FedRecon as FedRecon
from ownview.methods.fedsasrec import FedSASRec as FedSASRec
from ownview.methods.gpfedrec import GPFedRec as GPFedRec
from ownview.methods.local_only import LocalOnly as LocalOnly
from ownview.methods.perfedrec import PerFedRec as PerFedRec
from ownview.methods.pfedclr import PFedCLR as PFedCLR
from ownview.methods.pfedgraph import PFedGraph as PFedGraph
from ownview.methods.pfedrec import PFedRec as PFedRec
from ownview.plugins.dual_personalisation import DualPersonalisation as DualPersonalisation
from ownview.plugins.elastic_merging import ElasticMerging as ElasticMerging
from ownview.plugins.late_aggregation import LateAggregation as LateAggregation
from ownview.plugins.plgc import PLGC as PLGC
from ownview.runs.api import compare as compare
from ownview.runs.api import run as run
from ownview.runs.experiment import Experiment as Experiment
from ownview.runs.run import Run as Run
from ownview.runs.run import open_run as open_run
from ownview.runs.run import resume as resume
from ownview.runs.skew import skew as skew
from ownview.seam.client import Client as Client
from ownview.seam.client import Patch as Patch
from ownview.seam.client import Product as Product
from ownview.seam.client import Reporting as Reporting
from ownview.seam.client import Summand as Summand
from ownview.seam.client import Summands as Summands
from ownview.seam.client import Training as Training
from ownview.seam.cohorts import Cohort as Cohort
from ownview.seam.cohorts import Seen as Seen
from ownview.seam.initial import Constant as Constant
from ownview.seam.initial import Normal as Normal
from ownview.seam.initial import Orthonormal as Orthonormal
from ownview.seam.initial import Uniform as Uniform
from ownview.seam.method import Federated as Federated
from ownview.seam.method import Method as Method
from ownview.seam.method import ReportingMethod as ReportingMethod
from ownview.seam.method import cross_entropy as cross_entropy
from ownview.seam.mixing import Known as Known
from ownview.seam.mixing import Mixing as Mixing
from ownview.seam.optimizers import Adam as Adam
from ownview.seam.optimizers import Sgd as Sgd
from ownview.seam.plugin import Plugin as Plugin
from ownview.seam.roles import Param as Param
from ownview.seam.roles import chance as chance
from ownview.seam.roles import fresh as fresh
from ownview.seam.roles import held as held
from ownview.seam.roles import history as history
from ownview.seam.roles import kept as kept
from ownview.seam.roles import personal as personal
from ownview.seam.roles import private as private
from ownview.seam.roles import received as received
from ownview.seam.roles import reported as reported
from ownview.seam.roles import shared as shared
from ownview.seam.roles import table as table
from ownview.seam.roles import timeline as timeline
from ownview.seam.server import Arrived as Arrived
from ownview.seam.server import Draw as Draw
from ownview.seam.server import Mean as Mean
from ownview.seam.server import RowMean as RowMean
from ownview.seam.server import Server as Server
from ownview.seam.server import ServerStep as ServerStep
from ownview.seam.server import Sums as Sums
from ownview.seam.training import Batch as Batch
from ownview.seam.training import BeginWith as BeginWith
from ownview.seam.training import Context as Context
from ownview.seam.training import Opening as Opening
from ownview.seam.training import Params as Params
from ownview.seam.training import Phase as Phase
from ownview.seam.training import Shrink as Shrink
from ownview.seam.training import Step as Step
from ownview.seam.training import World as World

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
