"""abstag: tag machine-learning abstracts by research area, and say honestly which classifier to trust."""

__version__ = "0.1.0"
