delete from block_group where source = ? and first = ?
