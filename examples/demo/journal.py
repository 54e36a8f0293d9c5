"""What each process of the demo saw: a file per process, a JSON line per event, written before the next step."""

import glob
import json
import os


class Journal:
    def __init__(self, folder, name):
        path = f"{folder}/{name}.{os.getpid()}.jsonl"
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, event, **facts):
        os.write(self.file, json.dumps({"event": event, **facts}).encode() + b"\n")


class Reader:
    """Reads all journals of a name; each call of news() returns what was written since the last."""

    def __init__(self, folder, name="*"):
        self.pattern = f"{folder}/{name}.*.jsonl"
        self.offsets = {}

    def news(self):
        for path in sorted(glob.glob(self.pattern)):
            process, pid = os.path.basename(path).split(".")[:2]
            with open(path, "rb") as file:
                file.seek(self.offsets.get(path, 0))
                for line in file:
                    if not line.endswith(b"\n"):
                        break  # not all of it is here yet, or kill -9 came in between
                    self.offsets[path] = self.offsets.get(path, 0) + len(line)
                    yield {"process": process, "pid": int(pid), **json.loads(line)}
