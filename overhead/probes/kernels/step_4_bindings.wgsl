// The step with 4 buffers bound. All but the first hold zeros, and each is read.
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@group(0) @binding(1) var<storage, read> zeros_1: array<u32>;
@group(0) @binding(2) var<storage, read> zeros_2: array<u32>;
@group(0) @binding(3) var<storage, read> zeros_3: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let zero = zeros_1[id.x] + zeros_2[id.x] + zeros_3[id.x];
    data[id.x] = data[id.x] * 1664525u + 1013904223u + zero;
}
