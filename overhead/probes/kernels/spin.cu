// Keeps a stream busy for a time in nanoseconds, then ends by itself.
__device__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

extern "C" __global__ void spin(unsigned long long nanoseconds) {
    const unsigned long long began = now();
    while (now() - began < nanoseconds) {
    }
}
