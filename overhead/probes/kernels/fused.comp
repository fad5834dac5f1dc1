#version 450
// As many steps as the push constant says, in one dispatch: the word stays in a register between them.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer State { uint x[]; };
layout(push_constant) uniform Arguments { uint steps; };

void main() {
    uint i = gl_GlobalInvocationID.x;
    uint value = x[i];
    for (uint step = 0u; step < steps; ++step) {
        value = value * 1664525u + 1013904223u;
    }
    x[i] = value;
}
