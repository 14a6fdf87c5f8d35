"""What runs need, loaded in the process that those of runs are forked from (`runs.parents`)."""

from ownview.base.collection import without_collection

with without_collection("torch"):
    import ownview.runs.run  # noqa: F401 - loading it is all that is asked for
