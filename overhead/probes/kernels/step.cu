// The step: 256 words, 4 groups of 64, in place; with no argument, one, 8 and 32. What exceeds one is not read.
typedef unsigned int word;
typedef unsigned long long spare;

__device__ word *state;

__device__ void advance(word *x) {
    const word i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = x[i] * 1664525u + 1013904223u;
}

#define SEVEN(p) spare p##0, spare p##1, spare p##2, spare p##3, spare p##4, spare p##5, spare p##6
#define EIGHT(p) SEVEN(p), spare p##7

extern "C" __global__ void step0() { advance(state); }
extern "C" __global__ void step1(word *x) { advance(x); }
extern "C" __global__ void step8(word *x, SEVEN(a)) { advance(x); }
extern "C" __global__ void step32(word *x, SEVEN(a), EIGHT(b), EIGHT(c), EIGHT(d)) { advance(x); }
