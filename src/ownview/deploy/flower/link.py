"""`python -m ownview.deploy.flower.link FOLDER --host H --port P`: Flower's link behind our gate, until stdin ends.

FOLDER has ca.crt, server.crt and server.key (see `deploy.certificates`), and link.secret. The link keeps everything in
memory: after a restart keys are enrolled again, places connect again, and what was on its way is sent again.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from ownview.deploy.flower.gate import Gate
from ownview.deploy.flower.surroundings import require_flower

SECRET = "link.secret"


def main() -> None:
    """Serve; whoever started this process ends it by closing its stdin, or by dying."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    given = parser.parse_args()
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    serve(given.folder, given.host, given.port)


def serve(folder: Path, host: str, port: int) -> None:
    """Until a signal comes."""
    require_flower()
    import uvicorn  # noqa: PLC0415 - comes with Flower
    from flwr.superlink.cli.flower_superlink import SuperLinkLifespan  # noqa: PLC0415
    from flwr.superlink.config_loader import SuperLinkLifespanConfig, load_control_authn_plugin  # noqa: PLC0415
    from flwr.superlink.main import create_app  # noqa: PLC0415

    logging.getLogger("flwr").setLevel(logging.WARNING)
    certificate, key, authority = (str(folder / name) for name in ("server.crt", "server.key", "ca.crt"))
    config = SuperLinkLifespanConfig(
        control_address="", health_server_address=None, host=host, port=port, insecure=False, certificates=None,
        superexec_auth_secret=None, authn_plugin=load_control_authn_plugin(), event_log_plugin=None,
        fleet_event_log_plugin=None, enable_event_log=False, artifact_provider=None, enable_supernode_auth=True,
        fleet_api_type="grpc-rere", fleet_api_address=None, simulation=False, ssl_ca_certfile=authority,
        ssl_certfile=certificate, ssl_keyfile=key, database=":flwr-in-memory:", isolation="process",
        runtime_dependency_install=False,
    )  # fmt: skip
    secret = (folder / SECRET).read_text(encoding="ascii").strip()
    app = Gate(create_app(config, SuperLinkLifespan), secret)
    uvicorn.run(
        app, host=host, port=port, ssl_certfile=certificate, ssl_keyfile=key, log_level="warning", access_log=False,
        timeout_graceful_shutdown=1,
    )  # fmt: skip


def _end_with_stdin() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
