"""FedNext: settings and choice of a form (`method`); the forms `full`, `rank` and `private`, and their memory."""

from ownview.methods.fednext.method import FedNext as FedNext
