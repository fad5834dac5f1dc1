// The buffers of a program: create them, bind them in group 0 by their number, write them, read them back.

export class Buffers {
  // `buffers`: kind, size in bytes and optional contents of each. `states`: number of copies of the first buffer.
  constructor(device, { buffers, states = 1 }) {
    const { COPY_DST, COPY_SRC, MAP_READ, STORAGE, UNIFORM } = GPUBufferUsage;
    this.device = device;
    this.kinds = buffers;
    this.usages = {
      "storage": STORAGE | COPY_SRC | COPY_DST, "read-only-storage": STORAGE | COPY_DST, "uniform": UNIFORM | COPY_DST,
    };
    this.owned = [];
    const [first, ...others] = buffers;
    this.states = Array.from({ length: states }, () => this.create(first));
    this.bound = [this.states[0], ...others.map((one) => this.create(one))];
    const readable = buffers.filter(({ kind }) => kind === "storage").reduce((sum, { size }) => sum + size, 0);
    this.staging = this.allocate(readable, MAP_READ | COPY_DST);
  }

  allocate(size, usage) {
    const buffer = this.device.createBuffer({ size, usage });
    this.owned.push(buffer);
    return buffer;
  }

  // A new buffer with this description.
  create({ kind, size, data }) {
    const buffer = this.allocate(size, this.usages[kind]);
    if (data) this.device.queue.writeBuffer(buffer, 0, data);
    return buffer;
  }

  // A layout of group 0. With the size of a binding the browser checks it once, not at each dispatch.
  layout(bindings) {
    return this.device.createBindGroupLayout({
      entries: bindings.map(({ kind, size = 0 }, binding) => (
        { binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: kind, minBindingSize: size } })),
    });
  }

  // A bind group of the buffers with these numbers. `instead` replaces buffers by number.
  bind(layout, numbers, instead = {}) {
    return this.device.createBindGroup({
      layout, entries: numbers.map((i, binding) => ({ binding, resource: { buffer: instead[i] ?? this.bound[i] } })),
    });
  }

  // Put bytes at byte `at` of the concatenated buffers with these numbers.
  write(numbers, at, bytes) {
    let start = -at; // of the buffer, in `bytes`
    for (const i of numbers) {
      const end = start + this.kinds[i].size;
      const part = bytes.subarray(Math.max(start, 0), Math.max(end, 0));
      if (part.length) this.device.queue.writeBuffer(this.bound[i], Math.max(-start, 0), part);
      start = end;
    }
  }

  // Wait for submitted work, then return the first `sizes[i]` bytes of each buffer, concatenated.
  async readBack(buffers, sizes) {
    const encoder = this.device.createCommandEncoder();
    let total = 0;
    for (let i = 0; i < buffers.length; i++) {
      encoder.copyBufferToBuffer(buffers[i], 0, this.staging, total, sizes[i]);
      total += sizes[i];
    }
    this.device.queue.submit([encoder.finish()]);
    await this.staging.mapAsync(GPUMapMode.READ, 0, total);
    const bytes = this.staging.getMappedRange(0, total).slice(0);
    this.staging.unmap();
    return bytes;
  }

  // The bytes of the buffers with these numbers, concatenated.
  fetch(numbers) {
    return this.readBack(numbers.map((i) => this.bound[i]), numbers.map((i) => this.kinds[i].size));
  }

  destroy() {
    for (const buffer of this.owned) buffer.destroy();
  }
}
