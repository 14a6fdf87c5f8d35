"""Clients on devices of their own: places that answer messages, and a coordinator that sends them.

    place = Place(home)                                       # a folder; resident, answers one message at a time
    answer = place.answer(message)                            # bytes to bytes; the same message, the same answer
    Coordinator(agreement, transport, folder).run(rounds)     # goes on where the folder's checkpoint is

A carrier is a `Transport` on the coordinator's side, and something that hands messages to `Place.answer` on the other.
"""
