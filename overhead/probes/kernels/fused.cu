// As many steps as the argument says, in one launch: the word stays in a register between them.
extern "C" __global__ void fused(unsigned int *x, unsigned int steps) {
    const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned int value = x[i];
    for (unsigned int step = 0; step < steps; ++step) {
        value = value * 1664525u + 1013904223u;
    }
    x[i] = value;
}
