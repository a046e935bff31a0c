"""TOUCHES the operating system: its clocks, its randomness, who this process is."""
