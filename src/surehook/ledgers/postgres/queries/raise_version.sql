update configuration set version = version + 1
