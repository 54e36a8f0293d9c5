"""One HTTP call, and the three things that can come of it: an answer, surely nothing, or nobody knows."""

import http.client
import json
from typing import NamedTuple
from urllib.parse import urlsplit


class NotSent(Exception):
    """No byte has left this machine: it did not happen."""


class Unclear(Exception):
    """Sent, and no answer to rely on: it may have happened, or may be happening."""


class Answer(NamedTuple):
    status: int
    body: dict


def call(method, url, body=None, timeout_s=0.1, headers=()):
    """The answer.  A 5xx is one that nobody may rely on, except 503: nothing was begun."""
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=timeout_s)
    try:
        try:
            connection.connect()
        except OSError as error:
            raise NotSent(f"{where.netloc} cannot be reached: {error}") from error
        try:
            path = where.path + (f"?{where.query}" if where.query else "")
            connection.request(method, path, json.dumps(body) if body is not None else None, dict(headers))
            response = connection.getresponse()
            answer = Answer(response.status, json.loads(response.read()))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unclear(f"no answer to {method}: {error!r}") from error
    finally:
        connection.close()
    if answer.status >= 500 and answer.status != 503:
        raise Unclear(f"{method} answered {answer.status}")
    return answer
