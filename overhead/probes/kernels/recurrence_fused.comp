#version 450
// The workload recurrence, as many steps as the push constant says: its words stay in registers between them.
layout(local_size_x = 64) in;
layout(std430, set = 0, binding = 0) buffer Words { uint words[]; };
layout(push_constant) uniform Arguments { uint steps; };
const float H = 0.1, K = 1.0, C = 0.4;

void main() {
    const uint elements = uint(words.length()) / 4u, i = gl_GlobalInvocationID.x;
    if (i >= elements) return;
    float x = uintBitsToFloat(words[i]), v = uintBitsToFloat(words[elements + i]);
    const float force = uintBitsToFloat(words[2u * elements + i]);
    for (uint step = 0u; step < steps; ++step) {
        v = v + H * (force - K * x - C * v);
        x = x + H * v;
    }
    words[i] = floatBitsToUint(x);
    words[elements + i] = floatBitsToUint(v);
    words[3u * elements + i] += steps;
}
