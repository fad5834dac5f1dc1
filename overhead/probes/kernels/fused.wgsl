// The step, `count` times in one dispatch.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<uniform> count: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var x = data[id.x];
    for (var i = 0u; i < count; i++) {
        x = x * 1664525u + 1013904223u;
    }
    data[id.x] = x;
}
