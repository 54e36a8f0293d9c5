"""Object store: PUT /objects/NAME, with If-None-Match: * only if there is none, and GET; each object is a file."""

import hashlib
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "stories"))
from service import Refused, Service, arguments, serve


class ObjectStore(Service):
    def put(self, path, body):
        name = os.path.basename(path)
        content = json.dumps(body, sort_keys=True).encode()
        file, draft = tempfile.mkstemp(dir=self.folder, prefix=".draft.")
        try:
            os.write(file, content)
            os.fsync(file)
            if self.headers["If-None-Match"] == "*":
                os.link(draft, f"{self.folder}/{name}")
            else:
                os.replace(draft, f"{self.folder}/{name}")
        except FileExistsError:
            raise Refused(412, self.facts(name)) from None
        finally:
            os.close(file)
            if os.path.exists(draft):
                os.unlink(draft)
        folder = os.open(self.folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        return 201, self.facts(name)

    def get(self, path):
        name = os.path.basename(path)
        if not os.path.exists(f"{self.folder}/{name}"):
            raise Refused(404, {"error": "no such object"})
        return 200, self.facts(name)

    def facts(self, name):
        with open(f"{self.folder}/{name}", "rb") as file:
            return {"name": name, "sha256": hashlib.sha256(file.read()).hexdigest()}


if __name__ == "__main__":
    options = arguments()
    ObjectStore.folder = options.folder
    serve(ObjectStore, options)
