"""Clients that claim at a steady rate, while something else comes and goes."""
import pathlib
import subprocess
import tempfile

# Claims of a new command and its completion, or of a command that is there.
SCRIPTS = {
    "new": "SELECT count(idem_complete(idem_claim('octokit', 'load', gen_random_uuid()::text, '{\"order\": 7}'),"
           " '{\"id\": 7, \"status\": \"created\"}', 201, 'order/7'));\n",
    "old": "\\set i random(1, :commands)\nSELECT c.outcome FROM payloads p, idem_claim('octokit', p.event,"
           " 'delivery-' || :i, p.payload) c WHERE p.n = (:i - 1) / 2 % :kinds;\n",
}
CLIENTS = 4


def percentile(values, share):
    return sorted(values)[min(int(len(values) * share), len(values) - 1)] if values else float("nan")


class Clients:
    """pgbench at a fixed rate; each latency counts from the time that its claim was due."""

    def __init__(self, rate, seconds, commands, kinds):
        self.folder = tempfile.TemporaryDirectory()
        for name, script in SCRIPTS.items():
            pathlib.Path(self.folder.name, name).write_text(script)
        self.process = subprocess.Popen(
            ["pgbench", "-n", "-M", "prepared", "-c", str(CLIENTS), "-j", "1", "-R", str(rate), "-l",
             "-T", str(round(seconds)), "-D", f"commands={commands}", "-D", f"kinds={kinds}", "-f", "new@7", "-f", "old@3"],
            cwd=self.folder.name, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def latencies(self):
        """(when it ended, milliseconds) of every claim."""
        said = self.process.communicate()[0]
        if self.process.returncode:
            raise SystemExit(said)
        for log in pathlib.Path(self.folder.name).glob("pgbench_log*"):
            for line in log.read_text().splitlines():
                fields = line.split()
                yield int(fields[4]) + int(fields[5]) / 1e6, int(fields[2]) / 1000
        self.folder.cleanup()
