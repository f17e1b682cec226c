"""Tables of bf16 launches of chunked mode, chosen by compiling."""

from __future__ import annotations

# For bf16: tokens a chunk, features of the output a program, warps, stages. Rows are by kernel and
# the wider of K and V. Columns: unnormalised, unnormalised with mapped q and k, normalised,
# normalised with mapped q and k. Chunks of 16, 32 and 64, blocks of 32, 64 and 128, 4 and 8 warps,
# 2 and 3 stages were compiled. Among those that spill nothing and are not serialised, we take the
# one with the fewest instructions a token. With four warps two programs must fit on a
# multiprocessor. kernel_build stores both numbers. The choice holds for Triton 3.6 and 3.7, which
# compile the same kernel differently.
# dk and dv together: at 128, R takes 128 registers a thread of four warps, and half as many of
# eight. Chunks of 16 leave room for the products of both. Unnormalised they take 116 instructions a
# token, with two programs resident, for 139 apart; mapped 283 for 534, normalised 242 for 251, both
# 395 for 426. Chunks of 32 spill with four warps. Normalised, with eight warps, they would take
# 186, but spill if the returned state has a gradient, unless nothing is loaded ahead (one stage).
# At 256, two blocks of 128 features read the other tensors twice, four of 64 four times.
# Unnormalised, dq, dk and dv take 342 to 347 instructions for 520; mapped, dq 575 for 770 and dv
# 721 for 1,286. The others spill with blocks of 128. Chunks of 32 with blocks of 64 would take 364
# to 369, and the forward pass 368 for 500, but that spills, as blocks of 128 do there (335).
LARGE = {
    ("forward", 64): ((64, 64, 4, 2), (64, 64, 4, 2), (64, 64, 4, 2), (64, 64, 4, 2)),
    ("forward", 128): ((64, 64, 4, 2), (64, 64, 8, 2), (32, 128, 8, 2), (32, 128, 8, 2)),
    ("forward", 256): ((16, 64, 8, 2),) * 4,
    ("dq", 64): ((64, 64, 4, 2), (64, 64, 4, 2), (64, 64, 4, 2), (32, 64, 4, 2)),
    ("dq", 128): ((64, 64, 4, 2), (32, 64, 4, 2), (32, 128, 8, 2), (16, 128, 8, 3)),
    ("dq", 256): ((16, 128, 8, 2), (16, 128, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("dk", 64): ((64, 64, 4, 2), (64, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2)),
    ("dk", 128): ((64, 64, 4, 2), (64, 64, 8, 2), (32, 128, 8, 2), (32, 128, 8, 2)),
    ("dk", 256): ((16, 128, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("dv", 64): ((64, 64, 4, 2), (64, 64, 4, 2), (64, 64, 4, 2), (32, 64, 4, 2)),
    ("dv", 128): ((64, 64, 4, 2), (64, 64, 8, 2), (32, 64, 4, 2), (32, 128, 8, 2)),
    ("dv", 256): ((16, 128, 8, 2), (16, 128, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("dkv", 64): ((64, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2)),
    ("dkv", 128): ((16, 128, 4, 2), (32, 128, 8, 2), (16, 128, 8, 2), (16, 128, 8, 2)),
    ("one_pass", 64): ((64, 64, 4, 3), None, None, None),
}
SMALL = {
    ("forward", 64): ((32, 64, 4, 2), (32, 64, 8, 2), (32, 64, 8, 2), (32, 64, 8, 2)),
    ("forward", 128): ((32, 64, 4, 2), (16, 64, 8, 2), (16, 64, 4, 2), (16, 64, 8, 2)),
    ("forward", 256): ((16, 32, 8, 2),) * 4,
    ("dq", 64): ((32, 64, 4, 2), (32, 32, 4, 2), (16, 64, 4, 2), (16, 64, 8, 2)),
    ("dq", 128): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 128, 8, 3), (16, 64, 8, 2)),
    ("dq", 256): ((16, 32, 8, 2), (16, 32, 8, 2), (16, 32, 8, 2), (16, 32, 4, 2)),
    ("dk", 64): ((32, 64, 4, 2), (32, 32, 4, 2), (32, 64, 4, 2), (16, 64, 8, 2)),
    ("dk", 128): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 32, 8, 2), (16, 32, 8, 2)),
    ("dk", 256): ((16, 32, 8, 2), (16, 32, 8, 2), (16, 32, 8, 2), (16, 16, 4, 2)),
    ("dv", 64): ((32, 64, 4, 2), (32, 64, 8, 2), (32, 64, 4, 2), (32, 64, 8, 2)),
    ("dv", 128): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 4, 2), (16, 64, 8, 2)),
    ("dv", 256): ((16, 32, 8, 2), (16, 32, 8, 2), (16, 32, 4, 2), (16, 32, 4, 2)),
    ("dkv", 64): ((16, 64, 4, 2), None, None, None),
}


# The same with decay, whose weights and decayed tiles need registers of their own.
LARGE_FADED = {
    ("forward", 64): ((64, 64, 4, 3), (32, 64, 4, 2), (64, 64, 4, 3), (32, 64, 4, 2)),
    ("forward", 128): ((32, 64, 4, 2), (32, 64, 8, 2), (32, 64, 8, 2), (32, 64, 8, 2)),
    ("forward", 256): ((16, 32, 8, 2),) * 4,
    ("dq", 64): ((64, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2)),
    ("dq", 128): ((32, 64, 4, 3), (32, 64, 4, 2), (32, 128, 8, 2), (16, 128, 8, 2)),
    ("dk", 64): ((64, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 3)),
    ("dk", 128): ((32, 64, 4, 3), (32, 64, 4, 2), (32, 64, 8, 2), (16, 128, 8, 2)),
    ("dv", 64): ((64, 64, 4, 2), (64, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2)),
    ("dv", 128): ((32, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2)),
    **{(name, 256): ((16, 64, 8, 2),) * 4 for name in ("dq", "dk", "dv")},
    ("dkv", 64): ((32, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2), (32, 64, 4, 2)),
    ("dkv", 128): ((32, 128, 8, 2), (16, 128, 8, 2), (16, 128, 8, 2), (16, 128, 8, 2)),
}
SMALL_FADED = {
    ("forward", 64): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("forward", 128): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 32, 8, 2), (16, 64, 8, 2)),
    ("dq", 64): ((16, 64, 8, 2), (16, 32, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("dq", 128): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("dk", 64): ((16, 64, 8, 2), (16, 32, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("dk", 128): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 32, 8, 2), (16, 32, 8, 2)),
    ("dv", 64): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
    ("dv", 128): ((16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2), (16, 64, 8, 2)),
}

# Triton before 3.7 needs more registers for the same kernel. It has launches of its own where those
# that it can compile would cost Triton 3.7 more than 5% of its instructions. By Gpu.large, decay,
# kernel, width and column of the tables above.
BEFORE_3_7 = {
    (True, False, "dq", 64, 2): (32, 64, 4, 2),
    (True, False, "dv", 128, 0): (32, 64, 4, 2),
    (True, True, "dkv", 64, 2): (32, 64, 4, 1),
    (True, True, "dkv", 64, 3): (32, 64, 4, 1),
    (True, True, "dkv", 128, 0): (16, 128, 8, 2),
    (True, True, "dq", 128, 1): (32, 64, 8, 2),
    (True, True, "dq", 128, 2): (16, 128, 8, 2),
    (True, True, "dk", 128, 1): (32, 64, 8, 2),
    (True, True, "dv", 128, 3): (16, 64, 4, 2),
    (True, True, "dq", 256, 3): (16, 32, 8, 2),
    (True, True, "dk", 256, 3): (16, 64, 8, 1),
}

# Programs that a multiprocessor must hold for memory to be the limit, if each instruction of a warp
# takes DEPENDENT_CYCLES: instructions over bytes, from kernel_build. By Gpu.large and width,
# columns as above. The first table is the mean of the passes forward, dq, dk and dv; the second
# that of passes that form more than one gradient. Decay doubles it.
NEEDED = {
    (True, 64): (0.9, 2.1, 1.3, 2.8),
    (True, 128): (1.0, 2.1, 1.0, 1.8),
    (True, 256): (1.3, 2.8, 3.6, 5.5),
    (False, 64): (1.2, 2.8, 2.0, 3.6),
    (False, 128): (2.2, 4.3, 3.8, 6.8),
    (False, 256): (5.0, 9.0, 10.0, 18.0),
}
NEEDED_TOGETHER = {
    (True, 64): (1.0, 2.2, 1.4, 2.8),
    (True, 128): (1.05, 1.3, 1.1, 1.8),
    (False, 64): (1.8,),
}
NEEDED_OTHERWISE = 4.0  # of other dtypes, whose products are slower

# The tiles of attention mode that Triton before 3.7 can have no more than half as long. By
# Gpu.large, decay, role, width and column of the launch tables.
HALVED_BEFORE_3_7 = {
    (True, False, "dq", 64, 3),
    (True, True, "dk", 64, 3),
    (True, True, "dq", 128, 2),
    (False, False, "dq", 256, 2),
    (False, False, "dv", 256, 3),
    (False, True, "dv", 64, 1),
    (False, True, "dk", 64, 2),
    (False, True, "dv", 64, 2),
    (False, True, "dk", 64, 3),
    (False, True, "dv", 64, 3),
    (False, True, "dk", 128, 3),
    (False, True, "o", 256, 1),
    (False, True, "dv", 256, 1),
    (False, True, "o", 256, 3),
    (False, True, "dv", 256, 3),
}
