delete from block_bits where source = ? and first = ?
