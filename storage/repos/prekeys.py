"""Private halves of this user's prekeys: kept before the prekey is stated, forgotten when no box needs them any more."""

from collections.abc import Iterable, Mapping

from sqlalchemy import Connection, delete, insert, select

from protocol.crypto.epoch_boxes import prekey_of
from protocol.crypto.keys import AgreementSecret
from protocol.ids import AgreementKey
from storage.engine.column_encryption import cipher_of, prekey_place
from storage.engine.database import Database
from storage.schema.schema import prekeys


def add_prekey(database: Database, connection: Connection, repo_num: int, secret: AgreementSecret) -> None:
    """Keep the private half of a prekey of a repo."""
    prekey = prekey_of(secret)
    (num,) = database.next_nums(connection, prekeys, 1)
    sealed = cipher_of(connection).seal(prekey_place(repo_num, prekey), secret)
    connection.execute(insert(prekeys).values(num=num, repo_num=repo_num, prekey=prekey, secret=sealed))


def load_prekeys(connection: Connection, repo_num: int) -> Mapping[AgreementKey, AgreementSecret]:
    """Load the prekeys of a repo, the latest first. Costs O(them)."""
    columns, cipher = prekeys.c, cipher_of(connection)
    rows = connection.execute(
        select(columns.prekey, columns.secret)
        .where(columns.repo_num == repo_num)
        .order_by(columns.num.desc())
    )
    return {
        AgreementKey(prekey): AgreementSecret(cipher.open(prekey_place(repo_num, prekey), secret))
        for prekey, secret in rows
    }


def forget_prekeys(connection: Connection, repo_num: int, gone: Iterable[AgreementKey]) -> None:
    """Forget the private halves of some prekeys of a repo."""
    columns = prekeys.c
    for prekey in gone:
        connection.execute(delete(prekeys).where(columns.repo_num == repo_num, columns.prekey == prekey))
