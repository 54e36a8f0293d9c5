"""Sabotage: what workers get wrong, done to a worker on purpose, to see that the comparison notices.

Each takes the place of a function in the process that is about to run.
"""

import uuid

import intents
from http_call import NotSent, Unclear


def new_id_per_try():
    """Every try of a call has an operation id of its own."""
    attempt = intents.attempt

    def sabotaged(db, intent, send):
        return attempt(db, intent, lambda held: send(held._replace(operation_id=uuid.uuid4())))

    intents.attempt = sabotaged


def silence_is_failure():
    """A call without an answer counts as one that did not happen."""
    attempt = intents.attempt

    def sabotaged(db, intent, send):
        def call(held):
            try:
                return send(held)
            except Unclear as error:
                raise NotSent(str(error)) from error
        return attempt(db, intent, call)

    intents.attempt = sabotaged
