"""The control that everybody uses: SET NX with a replica and Sentinels."""

import subprocess

import redis

from cluster import wait_until

PORT, SENTINEL = 6399, 26399


class Redis:
    title = "Redis SET NX, replica, three Sentinels"
    control = True
    faults = (redis.RedisError, OSError)

    def create(self, network, folder, bindir, conf):
        self.hosts, self.processes = network.hosts, []
        self.folder = folder
        primary = self.hosts[0].address
        for number, host in enumerate(self.hosts):
            follow = ["--replicaof", primary, str(PORT)] if number else []
            self.launch(host, "redis-server", "--port", str(PORT), "--dir", self.folder,
                        "--dbfilename", f"redis{number}.rdb", "--appendonly", "yes",
                        "--appenddirname", f"aof{number}", "--protected-mode", "no",
                        "--repl-timeout", "3", *follow)
        wait_until(lambda: self.replication(0, "connected_slaves") == "2",
                   "two replicas")
        for number, host in enumerate(self.hosts):
            path = f"{folder}/sentinel{number}.conf"
            with open(path, "w", encoding="ascii") as file:
                file.write(f"""port {SENTINEL}
dir {folder}
protected-mode no
sentinel monitor it {primary} {PORT} 2
sentinel down-after-milliseconds it 1000
sentinel failover-timeout it 5000
""")
            subprocess.run(["chown", "postgres", path], check=True)
            self.launch(host, "redis-sentinel", path)
        wait_until(lambda: self.sentinel(1, "num-other-sentinels") == "2", "three Sentinels")

    def launch(self, host, *command):
        self.processes.append(subprocess.Popen(
            host.command(*command), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def command_on(self, number, port, *words):
        """Through redis-cli on the host itself; nothing while it is not there."""
        return self.hosts[number].run("redis-cli", "--raw", "-p", str(port), *words,
                                      check=False, timeout=5).stdout

    def replication(self, number, field):
        lines = self.command_on(number, PORT, "INFO", "replication").splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line).get(field)

    def sentinel(self, number, field):
        lines = self.command_on(number, SENTINEL, "SENTINEL", "MASTER", "it").splitlines()
        return dict(zip(lines[::2], lines[1::2])).get(field)

    def standby_answers(self, key):
        return None

    def fail_over(self):
        """The Sentinels do it by themselves; this waits for them."""
        old = self.hosts[0].address
        wait_until(lambda: self.sentinel(1, "ip") not in (None, old), "the Sentinels' failover")
        self.new = [host.address for host in self.hosts].index(self.sentinel(1, "ip"))

    def crash_old(self):
        """It answers as before; a crash would not make it worse."""

    def bring_back(self):
        self.hosts[0].heal()
        wait_until(lambda: self.replication(0, "role") == "slave"
                   and self.replication(0, "master_link_status") == "up",
                   "the old primary follows", 60)

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()

    def ground(self):
        dump = self.command_on(self.new, PORT, "EVAL", """
            local result = {}
            for _, key in ipairs(redis.call('KEYS', '*')) do
                result[#result + 1] = key
                result[#result + 1] = redis.call('GET', key)
            end
            return result""", "0").splitlines()
        return dict(zip(dump[::2], dump[1::2])), []

    def connect(self, address):
        return redis.Redis(address, PORT, socket_timeout=1, socket_connect_timeout=1,
                           decode_responses=True)

    def command(self, db, key, response):
        if db.set(key, response, nx=True, ex=3600):
            return "execute", response
        return "replay", db.get(key)

    def ask(self, db, key):
        return db.get(key)
