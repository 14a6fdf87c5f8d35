"""What clients and server agree on before the first round."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ownview.base.errors import SettingError
from ownview.base.randomness import derive
from ownview.engine.machine import Machine
from ownview.federation.messages import Upload
from ownview.federation.options import FederationOptions
from ownview.federation.post import Post
from ownview.federation.reporting import ReportingWork
from ownview.federation.server import ServerPlan, with_options
from ownview.federation.soundness import require_sound
from ownview.federation.training import TrainingWork
from ownview.federation.transforms import Sending, Transform, transforms
from ownview.federation.work import Household, Work
from ownview.seam.client import Client, Reporting
from ownview.seam.method import Federated
from ownview.seam.server import Sums
from ownview.seam.training import World


@dataclass(frozen=True, eq=False)
class Terms:
    """What clients and server have agreed on before the first round; both halves follow from it.

    Args:
        client: the method's.
        plan: of the server.
        transform: of uploads; None for none.
        post: how messages are written.
    """

    client: Client
    plan: ServerPlan
    transform: Transform | None
    post: Post

    @classmethod
    def of(cls, method: Federated, world: World, options: FederationOptions, seed: int, machine: Machine) -> Terms:
        """Checked: what makes no sense is refused with the reason."""
        client, server = require_sound(method, world)
        server = with_options(method.name, server, options, client)
        plan = ServerPlan(method.name, client, server, world, options, seed, machine)
        if options.row_mean == "touched" and not plan.tables:
            raise SettingError(
                f"federation setting row_mean='touched': the server averages no item table of {method.name}; "
                "expected method or all"
            )
        own_noise = server.combine.noise if isinstance(server.combine, Sums) else "none"
        transform = transforms(options.privacy if options.privacy != "none" else own_noise)
        why = transform.refusal(client, server) if transform is not None else None
        if why:
            raise SettingError(
                f"federation setting privacy={options.privacy!r} makes no sense for {method.name}: {why}"
            )
        shrunk = {n for phase in client.phases for step in phase.steps for s in step.parts if s.shrink for n in s.names}
        tells_samples = plan.weighting == "samples" or bool(plan.mixed)
        post = Post(client, world.num_items, plan.mixed, tells_samples, bool(plan.by_row), frozenset(shrunk))
        return cls(client, plan, transform, post)

    def work(self, home: Household) -> Work:
        """What clients do in a round."""
        return ReportingWork(home) if isinstance(self.client.work, Reporting) else TrainingWork(home)

    def sizes(self, upload: Upload) -> Tensor:
        """[B] bytes of the messages in which these clients' uploads leave; noise makes everything whole."""
        if self.transform is None or not len(upload.clients):
            return self.post.upload_sizes(upload)
        size = self.post.upload_sizes(self.sent(upload.one(0), 1))
        return size.expand(len(upload.clients))

    def sent(self, upload: Upload, number: int) -> Upload:
        """Uploads as they leave their clients."""
        if self.transform is None:
            return upload
        samples = self.plan.weighting == "samples"
        weights = upload.samples if samples else torch.ones_like(upload.samples)
        key = derive(self.plan.seed, "privacy", number)
        return self.transform.on_client(upload, Sending(key, weights, self.plan.world.num_items))
