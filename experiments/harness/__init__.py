"""The harness of the experiments: plans, records, provenance, timing, corpora, training."""
