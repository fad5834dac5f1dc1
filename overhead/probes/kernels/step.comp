#version 450
// The step: 256 words, 4 groups of 64, in place.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer State { uint x[]; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    x[i] = x[i] * 1664525u + 1013904223u;
}
