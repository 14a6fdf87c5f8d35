"""Flower as the carrier: its link stands between coordinator and places, each of which is a node of its own key.

    link          the link as a process: Flower's own program behind a gate that lets places through and nobody else
    supervised    that process, started again when it ends
    access        what the server asks of the link: enrol keys, begin a run
    grid          the coordinator's end of the transport
    node          a place's end
    parcels       a message of ours inside a message of Flower's

No code travels: a place is a program that was installed there, and it answers messages.
"""
