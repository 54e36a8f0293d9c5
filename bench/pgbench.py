"""Rates of many clients, by pgbench with prepared statements."""
import os
import re
import subprocess
import tempfile


class Script:
    def __init__(self, name, text, **values):
        self.name, self.rates = name, {}
        with tempfile.NamedTemporaryFile("w", dir=os.environ["SCRATCH"], delete=False) as file:
            file.write(text)
        self.path = file.name
        self.defines = [f"--define={key}={value}" for key, value in values.items()]

    def measure(self, clients, seconds):
        """Notes transactions a second; returns how many there were."""
        ran = subprocess.run(
            ["pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", str(min(clients, 2)),
             "-T", str(seconds), "-f", self.path, *self.defines],
            capture_output=True, text=True,
            # the hand-written functions find their table by it
            env={**os.environ, "PGOPTIONS": "-c search_path=public,rival"})
        output = ran.stdout
        if ran.returncode or "number of failed transactions: 0 " not in output:
            raise RuntimeError(output + ran.stderr)
        self.rates.setdefault(clients, []).append(float(re.search(r"^tps = ([0-9.]+)", output, re.M)[1]))
        return int(re.search(r"actually processed: (\d+)", output)[1])


def measure(scripts, rounds, clients, seconds):
    """All scripts take turns; returns the number of each one's transactions."""
    done = dict.fromkeys(scripts, 0)
    for number in range(rounds):
        for count in clients:
            # whoever goes first changes from round to round
            turn = number % len(scripts)
            for script in scripts[turn:] + scripts[:turn]:
                done[script] += script.measure(count, seconds)
    return done
