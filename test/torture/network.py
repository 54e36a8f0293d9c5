"""Hosts as network namespaces on one bridge, each of which can be cut off."""

import ctypes
import os
import subprocess

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def ip(*words, namespace=None):
    command = ["ip", *(["-n", namespace] if namespace else []), *words]
    subprocess.run(command, check=True, capture_output=True, text=True)


class Host:
    def __init__(self, network, number):
        self.network = network
        self.namespace = f"{network.prefix}{number}"
        self.port = f"p{number}"            # its plug on the bridge
        self.address = f"10.211.0.{number}"
        ip("netns", "add", self.namespace)
        ip("link", "add", self.port, "netns", network.switch, "type", "veth",
           "peer", "name", "eth0", "netns", self.namespace)
        ip("link", "set", self.port, "master", "bridge", "up", namespace=network.switch)
        ip("addr", "add", f"{self.address}/24", "dev", "eth0", namespace=self.namespace)
        ip("link", "set", "lo", "up", namespace=self.namespace)
        ip("link", "set", "eth0", "up", namespace=self.namespace)

    def cut(self):
        """Nothing reaches it any more, and nobody is told."""
        ip("link", "set", self.port, "down", namespace=self.network.switch)

    def heal(self):
        ip("link", "set", self.port, "up", namespace=self.network.switch)

    def enter(self):
        """Moves this process to the host."""
        with open(f"/run/netns/{self.namespace}", encoding="ascii") as handle:
            if libc.setns(handle.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")

    def run(self, *command, check=True, **options):
        """Runs a command there, as postgres."""
        done = subprocess.run(self.command(*command), check=False, capture_output=True,
                              text=True, **options)
        if check and done.returncode:
            raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")
        return done

    def command(self, *command):
        return ["ip", "netns", "exec", self.namespace, "setpriv", "--reuid=postgres",
                "--regid=postgres", "--init-groups", *command]


class Network:
    def __init__(self, hosts):
        self.prefix = f"idem{os.getpid()}-"
        self.switch = f"{self.prefix}0"
        ip("netns", "add", self.switch)
        ip("link", "add", "bridge", "type", "bridge", namespace=self.switch)
        ip("link", "set", "bridge", "up", namespace=self.switch)
        self.hosts = [Host(self, number + 1) for number in range(hosts)]

    def remove(self):
        for namespace in [self.switch] + [host.namespace for host in self.hosts]:
            subprocess.run(["ip", "netns", "del", namespace], check=False)
