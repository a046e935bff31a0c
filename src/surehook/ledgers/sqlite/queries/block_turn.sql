-- Row numbers above this one will be reused.
update block_mark set row = min(row, ?), turn = turn + 1 where source = ?
