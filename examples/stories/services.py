"""The HTTP services of a story as processes that can be told to fail, killed, and started again on the same port."""

import subprocess
import sys

from http_call import call


class ServiceProcess:
    def __init__(self, script, folder, *options):
        self.command = [sys.executable, "-B", script, "--folder", folder, *options]
        self.port = 0
        self.start()

    def start(self):
        self.handle = subprocess.Popen([*self.command, "--port", str(self.port)],
                                       stdout=subprocess.PIPE, text=True)
        said = self.handle.stdout.readline()
        if not said:
            sys.exit(f"{self.command[2]} does not start")
        self.port = int(said)

    def start_again(self):
        """If it is dead."""
        if self.handle.poll() is not None:
            self.handle.stdout.close()
            self.start()

    def stop(self):
        self.handle.kill()
        self.handle.wait()

    def will_fail(self, at, how):
        call("POST", f"http://127.0.0.1:{self.port}/fault", {"at": at, "how": how}, timeout_s=10)
