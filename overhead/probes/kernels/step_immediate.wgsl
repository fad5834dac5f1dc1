// The step, its increment in an immediate: a parameter a dispatch.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<immediate> increment: u32;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    data[id.x] = data[id.x] * 1664525u + increment;
}
