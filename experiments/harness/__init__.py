"""What the experiments are run with: plans, records, provenance, timing, corpora, training."""
