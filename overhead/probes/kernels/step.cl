// The step: 256 words, 4 groups of 64, in place.
kernel void advance(global uint *x) {
    const size_t i = get_global_id(0);
    x[i] = x[i] * 1664525u + 1013904223u;
}

// Keeps a queue busy. A turn takes more than three cycles; the exclusive or prevents that turns are combined.
kernel void spin(global uint *x, uint turns) {
    uint value = x[0];
    for (uint turn = 0; turn < turns; ++turn) {
        value = (value ^ turn) * 1664525u;
    }
    x[0] = value;
}
