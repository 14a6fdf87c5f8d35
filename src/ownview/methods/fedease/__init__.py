"""FedEASE: the algorithm (`algorithm`), its settings, and the choice of form, memory and export (`method`)."""

from ownview.methods.fedease.method import FedEASE as FedEASE
