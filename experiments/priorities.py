"""Priorities: the order in which a GPU's few minutes are spent, across all experiments."""

# Whether the kernels are right, how fast they are, what a model gains, then the rest; last the runs
# that show no more on a GPU than on a CPU.
RIGHT, RACE, MODES_RACE, CURVES, BLOCK, SAMPLING, REST, LATE = 1, 4, 5, 6, 7, 8, 9, 80
