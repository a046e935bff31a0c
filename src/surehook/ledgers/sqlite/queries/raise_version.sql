update configuration set version = version + 1 returning version
