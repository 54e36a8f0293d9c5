"""One long-lived session, and what its backend costs."""
import pathlib

from psycopg import pq


class ServerError(RuntimeError):
    def __init__(self, result):
        super().__init__(result.error_message.decode().strip())
        self.result = result


class Session:
    """Speaks libpq directly: prepared statements, no driver in between."""

    def __init__(self, search_path="public", database="postgres", host=None, commit="off"):
        """The cost of flushing belongs to the disk, not to the variant: as a rule commits are not flushed."""
        where = f"dbname={database}" + (f" host={host}" if host else "")
        self.conn = pq.PGconn.connect(where.encode())
        if self.conn.status != pq.ConnStatus.OK:
            raise SystemExit(self.conn.error_message.decode())
        self.schedstat = pathlib.Path(f"/proc/{self.conn.backend_pid}/schedstat")
        self.sql(f"SET synchronous_commit = {commit}")
        self.sql(f"SET search_path = {search_path}")

    def sql(self, text):
        return self.checked(self.conn.exec_(text.encode()))

    def prepare(self, **statements):
        for name, text in statements.items():
            self.checked(self.conn.prepare(name.encode(), text.encode()))

    def run(self, name, *values):
        return self.checked(self.conn.exec_prepared(name.encode(), values))

    def value(self, text):
        return self.sql(text).get_value(0, 0).decode()

    @staticmethod
    def checked(result):
        if result.status not in (pq.ExecStatus.COMMAND_OK,
                                 pq.ExecStatus.TUPLES_OK):
            raise ServerError(result)
        return result

    def cpu_us(self):
        """Microseconds on a CPU so far; exact while the backend is idle."""
        return int(self.schedstat.read_text().split()[0]) / 1000

    def wal(self):
        """WAL inserted so far: bytes, records, full-page images.

        Also what makes this session's records known at once; otherwise they
        would be counted up to ten seconds later, as somebody else's.
        """
        self.sql("SELECT pg_stat_force_next_flush()")
        row = self.sql("SELECT pg_current_wal_insert_lsn() - '0/0',"
                       " wal_records, wal_fpi FROM pg_stat_wal")
        return [int(row.get_value(0, column)) for column in range(3)]
