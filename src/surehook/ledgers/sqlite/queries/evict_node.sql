update node set buried_at = ? where number = ?
