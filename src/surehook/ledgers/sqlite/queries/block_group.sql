select first, cuts from block_group where source = ? and first <= ? order by first desc limit 1
