-- Row numbers above this one are given out again.
update block_mark set row = min(row, ?), turn = turn + 1 where source = ?
