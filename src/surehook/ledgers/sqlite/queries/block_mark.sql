select upto, row, turn from block_mark where source = ?
