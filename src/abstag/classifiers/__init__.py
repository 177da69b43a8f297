"""Classifiers: one module a family, each a scikit-learn estimator of the protocol in `base`."""
