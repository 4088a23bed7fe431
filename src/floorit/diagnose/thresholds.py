"""Every limit a finding is judged by, in one place."""

# A cost is worth naming when removing it whole would make the step faster by more than this factor
# (DESIGN: compute-bound and healthy come first only where no removable cost has a bound over 1.1).
NAMED = 1.1
# And where the GPU was watched, when that is likely to make it faster by more than this: else the GPU hides the cost.
FELT = 1.05
# Of the step in forward, backward and the like: more, and the model's own work is what takes the time.
COMPUTE_SHARE = 0.5
# Of a step, that the GPU works: more, and its work is told even where something else could be removed.
BUSY = 0.7
# Of the wait for data, spent on unpickling batches in the training process: more, and receiving is what takes the time.
RECEIVING = 0.5
# Of a function's looks, in calls that write: less, and what it computes is not taken for what it writes. Those of the
# case `detector` that log do so for half and two thirds of their time; to print a metric takes a few percent of it.
WRITES = 0.25
# Of the program's own code, in one library that runs the loop for it: less, and it is not said.
MOSTLY_ELSEWHERE = 0.2
# Threads that compute, over the cores allowed: from here on they are a crowd. Below, workers that wait make room.
CROWDED = 2.0
# Of the cores that are a rank's share, kept busy by its training process alone.
SATURATED = 0.9
# Times a second of computing that a process is preempted: a core of its own is taken away a few times, a shared one
# at the end of each time slice of some milliseconds.
PUSHED_ASIDE = 50
# The same where other programs take part of the cores: these alone push it aside 300 to 500 times (one thread, on a
# machine with three times as many programs as cores); many short pieces of work on too many threads, over 4000.
PUSHED_BY_ITS_OWN = 1500
# Of what workers compute, in threads of their libraries: less, and these threads are not worth naming.
HELPED = 0.15
# Of the time in which a worker could run, that it waits for a core.
KEPT_WAITING = 0.3
# Of the GPU's memory, in free pieces of blocks in use: less, and putting it together would not make the room.
FRAGMENTED = 0.05
# Of what tensors have on the GPU, in parameters, gradients and optimizer state: more, and these come first.
MOSTLY_STATE = 0.5
# Of the GPU's memory, in the hands of what is not this process's torch; CUDA itself takes about half a GiB.
OTHERS_HOLD = 0.1
# Times what was asked for, left on the GPU: from here on it was not for lack of memory that CUDA refused.
MUCH_ROOM = 4.0
# Samples a step: no more, and the batch is why kernels are short. With more of them it is the model's own layers.
FEW_SAMPLES = 8
# Of the GPU's memory in use at the peak: less, and twice the batch fits, whatever of it grows.
MOSTLY_FREE = 0.4
