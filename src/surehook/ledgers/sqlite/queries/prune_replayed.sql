delete from replayed where original = ?
