"""Session numbers of this node's editors of texts: the free part of a Yjs client id, given to one editor at a time.

A number that was given is written down before its editor learns it, so that no restart gives it to a second one.
"""

from sqlalchemy import Connection, delete, insert, select

from storage.schema.schema import text_sessions


def load_sessions(connection: Connection, branch_num: int) -> dict[int, int]:
    """Return when each session number of a branch was given last, in unix milliseconds."""
    query = select(text_sessions.c.session, text_sessions.c.given_at).where(
        text_sessions.c.branch_num == branch_num
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def put_session(connection: Connection, branch_num: int, session: int, now: int) -> None:
    """Note that a session number of a branch is given now, in unix milliseconds."""
    connection.execute(
        delete(text_sessions).where(
            text_sessions.c.branch_num == branch_num, text_sessions.c.session == session
        )
    )
    connection.execute(insert(text_sessions).values(branch_num=branch_num, session=session, given_at=now))
