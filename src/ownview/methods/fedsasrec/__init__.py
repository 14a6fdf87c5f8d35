"""FedSASRec: the algorithm (`algorithm`), its settings, shorter gradients, and memory and export (`method`)."""

from ownview.methods.fedsasrec.method import FedSASRec as FedSASRec
