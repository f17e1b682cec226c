"""In which order a GPU's few minutes are spent, across all experiments."""

# Whether the kernels are right, how fast they are, what a model gains, and
# the rest; last what tells no more there than on a CPU.
RIGHT, RACE, MODES_RACE, CURVES, BLOCK, SAMPLING, REST, LATE = 1, 4, 5, 6, 7, 8, 9, 80
