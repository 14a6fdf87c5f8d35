"""The program `ownview`: its commands, one word a task."""

from __future__ import annotations

from ownview.cli.program import Command, Program

COMMANDS = {
    "start": Command(
        "models.start",
        "Go from a file of interactions to recommendations: look at it, compare, fit the best, write lists and pages.",
    ),
    "run": Command("experiments.run", "Train a method and measure it; everything goes into a run folder."),
    "watch": Command(
        "experiments.watch", "Follow runs: validation and loss round by round, until all have finished or stopped."
    ),
    "compare": Command("experiments.compare", "Train several methods on the same data and put them side by side."),
    "blend": Command(
        "experiments.blend",
        "Blend finished runs at home: standardised scores added up, weights by validation wins summed over clients.",
    ),
    "tune": Command(
        "experiments.tune",
        "Find a method's best settings on validation; test is not looked at. The same command goes on where it "
        "stopped.",
    ),
    "bench": Command(
        "experiments.bench", "Run a suite of methods, datasets, protocols and seeds, and put everything into one table."
    ),
    "audit": Command(
        "experiments.audit",
        "Probe a protocol on some data: leaks, repeated pairs, time, selection, and whether its ranking is sane.",
    ),
    "attack": Command(
        "experiments.attack",
        "Attack a method as its server could: read users' items from uploads and sums, and audit what noise promises.",
    ),
    "score": Command(
        "experiments.score",
        "Measure recommendation lists of any program under a protocol, as a run; or write what it may train on.",
    ),
    "paper": Command(
        "experiments.paper",
        "Print finished runs for a paper: a table, one row against each, a figure, or BibTeX of the methods used.",
    ),
    "board": Command(
        "experiments.board",
        "Sign results, verify signed ones, and make one page of many: a board on which every row can be run again.",
    ),
    "verify": Command(
        "experiments.verify",
        "Verify a run: files, versions, source, data and figures; with --again, whether it comes out again.",
    ),
    "report": Command(
        "experiments.report", "Make one self-contained HTML page of finished runs: tables, curves, lists, pictures."
    ),
    "fit": Command(
        "models.fit", "Train a method on everything, nothing held out: for recommending, without a test figure."
    ),
    "update": Command(
        "models.update",
        "Add new rows to a model in use, with new people and new items; readers see the old version until all is done.",
    ),
    "forget": Command(
        "models.forget",
        "Take a person out of a model: sums, histories, lists, reports; a receipt says what was done and what cannot "
        "be.",
    ),
    "sums": Command(
        "models.sums",
        "The sums that a model is solved from: show, solve again, merge, add up once more; add up browsers' messages.",
    ),
    "sums serve": Command(
        "devices.share_server", "Run one of two servers that add up messages of browsers; neither can read one."
    ),
    "recommend": Command(
        "models.recommend",
        "Recommend items to one user, to everybody, or to a new person, with titles where there are any.",
    ),
    "page": Command(
        "models.page",
        "Make one offline HTML page in which people pick titles and get recommendations, computed in the page itself.",
    ),
    "export": Command(
        "models.export",
        "Write a finished model into a folder for a device: arrays, titles, a scorer that needs numpy only, a card.",
    ),
    "serve": Command(
        "models.serve",
        "Serve a model over HTTP: lists for a history or a known user, similar items, items by title, metrics.",
    ),
    "privacy": Command(
        "models.privacy", "What was released under budgets, of how many people, and what is left; totals."
    ),
    "deploy": Command(
        "devices.deploy", "Federations of real devices, each with its own data: folders, invitations, processes."
    ),
    "client": Command(
        "devices.client",
        "What a device does by itself: recommend (offline), sent (what has left), signer (its key for signed masks). "
        "`ownview deploy client` trains.",
    ),
    "new": Command("new", "Begin a package of your own: a method that installs, conforms and has tests."),
    "ls": Command("listing", "List methods, plug-ins, presets, datasets or runs."),
    "doctor": Command("doctor", "Show versions, devices, memory and the datasets found."),
    "data": Command("data", "Datasets: ls, describe, fetch, import."),
}
MOVED = {
    "render-results": "render-results is now: python -m reproduction results, in a clone of the repository",
    "reproduce": "reproduce is now: python -m reproduction run, in a clone of the repository; see docs/reproduce.md",
}
"""Commands of earlier versions, and what took their place."""

_PROGRAM = Program(
    "ownview",
    "Recommendations from a file of who took what: ownview start FILE. Personalised federated recommendation, measured "
    "honestly.",
    "ownview.cli",
    COMMANDS,
    MOVED,
)


def entry() -> None:
    """Run the command line."""
    _PROGRAM.run()
