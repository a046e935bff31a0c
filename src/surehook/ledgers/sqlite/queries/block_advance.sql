update block_mark set upto = ?, row = ? where source = ? and upto = ? and row = ? and turn = ?
