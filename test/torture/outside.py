"""The system that commands call: it does each thing that it is told, and remembers that."""

import os
import time


class Outside:
    """One file per operation id; each call that happens adds a byte to it."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def happened(self, operation_id):
        return os.path.exists(f"{self.folder}/{operation_id}")

    def counts(self):
        return {name: os.path.getsize(f"{self.folder}/{name}") for name in os.listdir(self.folder)}

    def call(self, operation_id, lease_until):
        """Makes the call, unless the caller's time is over; says whether it came in time.

        A worker that was held up between the two looks at the clock may have called too late:
        None, and nothing can be concluded from it."""
        if time.time() >= lease_until:
            return False
        file = os.open(f"{self.folder}/{operation_id}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, b"x")
        os.close(file)
        return True if time.time() < lease_until else None
