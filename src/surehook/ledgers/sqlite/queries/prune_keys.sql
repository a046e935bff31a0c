-- Row numbers follow insertion, and all keys live equally long.
delete from idempotency where rowid in (select rowid from idempotency order by rowid limit ?) and expires_at <= ?
