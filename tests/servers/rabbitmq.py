"""Private RabbitMQ: one node, or three in a cluster, with an epmd, a cookie and folders of their own.

Nodes are named `NAME@localhost`, so that no name service is asked; epmd, which knows their ports, listens on a port of
its own, so that neither another run nor the system's RabbitMQ is met.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
import time
from pathlib import Path

from tests.servers import folder, ports
from tests.servers.installed import program, rabbitmq_home
from tests.servers.program import NotStarted, Program

COOKIE = "ONLYFORTESTS"
CONFIG = """\
listeners.tcp.default = 127.0.0.1:{port}
log.console = true
log.console.level = info
log.file = false
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 50MB
raft.wal_max_size_bytes = 33554432
cluster_partition_handling = ignore
# Whether another node is down is told by its connection's end; a frozen one is given up after this many seconds.
net_ticktime = 10
"""
ERLANG = "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none -kernel inet_dist_use_interface {127,0,0,1}"
STOP_S = 20.0
VHOSTS = 8  # made at a time: a call of rabbitmqctl is a virtual machine of its own, a second or two of CPU
# One call in place of `add_vhost` and `set_permissions` for each.
MAKE_VHOSTS = (
    '[begin ok = rabbit_vhost:add(Name, <<"guest">>), rabbit_auth_backend_internal:set_permissions('
    '<<"guest">>, Name, <<".*">>, <<".*">>, <<".*">>, <<"guest">>) end || Name <- [{names}]].'
)


class Epmd(Program):
    """Erlang's port mapper, in the foreground."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.port = ports.noted(place / "epmd.port")

    def start(self) -> None:
        """Start it and wait until it listens."""
        self.spawn([program("RabbitMQ", "epmd"), "-port", str(self.port), "-address", "127.0.0.1"])
        self.until(lambda: ports.open_at(self.port))


class Rabbit(Program):
    """One node. It keeps its name, its ports and its data through restarts."""

    def __init__(self, place: Path, name: str, epmd: Epmd) -> None:
        super().__init__(place)
        self.name = f"{name}@localhost"
        self.port = ports.noted(place / "amqp.port")
        self._dist_port = ports.noted(place / "erlang.port")
        self._epmd = epmd
        cookie = place / ".erlang.cookie"
        if cookie.exists():
            return
        cookie.write_text(COOKIE)
        cookie.chmod(0o400)
        (place / "rabbitmq.conf").write_text(CONFIG.format(port=self.port))
        (place / "plugins").write_text("[].")
        for path in (cookie, place / "rabbitmq.conf", place / "plugins"):
            folder.give(path)

    @property
    def url(self) -> str:
        """Where a client finds it."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def _settings(self) -> dict[str, str]:
        place = str(self.place)
        return {
            "RABBITMQ_NODENAME": self.name,
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "RABBITMQ_CTL_DIST_PORT_MIN": str(self._dist_port + 10_000),
            "RABBITMQ_CTL_DIST_PORT_MAX": str(self._dist_port + 10_200),
            "RABBITMQ_MNESIA_BASE": f"{place}/data",
            "RABBITMQ_LOG_BASE": place,
            "RABBITMQ_CONFIG_FILE": f"{place}/rabbitmq.conf",
            "RABBITMQ_CONF_ENV_FILE": f"{place}/none",
            "RABBITMQ_ADVANCED_CONFIG_FILE": f"{place}/none.config",
            "RABBITMQ_GENERATED_CONFIG_DIR": f"{place}/config",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{place}/plugins",
            "RABBITMQ_PID_FILE": f"{place}/pid",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": ERLANG,
            "RABBITMQ_CTL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_PORT": str(self._epmd.port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    def begin(self) -> None:
        """Start it; returns at once."""
        self.spawn([str(rabbitmq_home() / "rabbitmq-server")], self._settings())

    def ready(self) -> bool:
        """Whether it takes connections: listeners open last."""
        return ports.open_at(self.port)

    def start(self) -> float:
        """Start it and wait until it takes connections; the seconds it took."""
        began = time.monotonic()
        self.begin()
        self.until(self.ready)
        return time.monotonic() - began

    def stop(self, *, immediate: bool = False) -> int:
        """Stop it, in order or with SIGKILL; nanoseconds of the monotonic clock just before."""
        if immediate:
            return self.kill()
        at = time.monotonic_ns()
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.place / "pid").read_text())
            if pid in self.pids():
                os.kill(pid, signal.SIGTERM)
        self.gone(STOP_S)
        return at

    def restart(self, *, immediate: bool = False) -> float:
        """Stop and start; seconds of the start."""
        self.stop(immediate=immediate)
        return self.start()

    def ctl(self, *words: str) -> str:
        """What `rabbitmqctl` says; it takes a second or two of CPU."""
        ended = self.run([str(rabbitmq_home() / "rabbitmqctl"), "--quiet", *words], self._settings())
        return ended.stdout

    def queues(self) -> dict[str, int]:
        """Messages by queue, ready and unacknowledged together."""
        lines = [
            line.split("\t")
            for line in self.ctl("list_queues", "--no-table-headers", "name", "messages").splitlines()
        ]
        return {name: int(count) for name, count in lines if count.isdigit()}


class Rabbits:
    """A cluster of nodes: `nodes[0]` is the one that the others joined; none is special afterwards."""

    def __init__(self, place: Path, count: int) -> None:
        self.place = folder.make(place)
        self.epmd = Epmd(place / "epmd")
        self.nodes = [
            Rabbit(place / f"node{number}", f"n{number}", self.epmd) for number in range(1, count + 1)
        ]

    @classmethod
    def new(cls, count: int = 1) -> Rabbits:
        """A running cluster; `close()` it, or leave it to the end of the run."""
        rabbitmq_home()
        place = Path(tempfile.mkdtemp(prefix="rabbitmq-", dir=folder.run_folder()))
        folder.give(place)
        made = cls(place, count)
        made.start()
        return made

    @property
    def urls(self) -> list[str]:
        """Where clients find the nodes."""
        return [node.url for node in self.nodes]

    def start(self) -> float:
        """Start all, join them, and wait; the seconds it took."""
        began = time.monotonic()
        self.epmd.start()
        first, *others = self.nodes
        for node in others:
            with (node.place / "rabbitmq.conf").open("a") as config:
                config.write("cluster_formation.peer_discovery_backend = classic_config\n")
                config.write(f"cluster_formation.classic_config.nodes.1 = {first.name}\n")
                config.write(f"cluster_formation.classic_config.nodes.2 = {node.name}\n")
        first.start()
        for node in others:  # one after the other: two that join at once may lock each other out
            node.start()
        if others and len(found := self.running()) != len(self.nodes):
            raise NotStarted(f"only {found} of {len(self.nodes)} nodes found each other")
        return time.monotonic() - began

    def running(self) -> list[str]:
        """The names of the nodes that the first living one sees running."""
        asked = next(node for node in self.nodes if node.ready())
        return list(json.loads(asked.ctl("cluster_status", "--formatter", "json"))["running_nodes"])

    def vhost(self) -> str:
        """The URL of a virtual host, empty and one's own, on the first node. It goes with the node."""
        unused = self.place / "vhosts"  # for all processes of the run: made, and given to nobody yet
        with folder.only_one(f"{self.place.name}-vhosts"):
            names = unused.read_text().split() if unused.exists() else []
            if not names:
                names = [f"t{time.monotonic_ns()}_{number}" for number in range(VHOSTS)]
                made = ", ".join(f'<<"{name}">>' for name in names)
                self.nodes[0].ctl("eval", MAKE_VHOSTS.format(names=made))
            name, *left = names
            unused.write_text(" ".join(left))
        return self.nodes[0].url + name

    def close(self) -> None:
        """Kill all of them."""
        for node in (*self.nodes, self.epmd):
            node.kill()


def rabbitmq() -> Rabbits:
    """The run's shared broker of one node: everybody takes a `vhost()` of it and nobody stops it."""
    with folder.only_one("rabbitmq"):
        rabbitmq_home()
        place = folder.run_folder() / "rabbitmq"
        known = place.exists()
        made = Rabbits(place, 1)
        if not known:
            made.start()
        return made
