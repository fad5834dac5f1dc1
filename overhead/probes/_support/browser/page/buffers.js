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
    // With minBindingSize the browser checks sizes once, not at each dispatch.
    this.layout = device.createBindGroupLayout({
      entries: buffers.map(({ kind, size }, binding) => (
        { binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: kind, minBindingSize: size } })),
    });
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

  // A bind group of all buffers. `instead` replaces buffers by number.
  bind(instead = {}) {
    return this.device.createBindGroup({
      layout: this.layout,
      entries: this.bound.map((buffer, binding) => ({ binding, resource: { buffer: instead[binding] ?? buffer } })),
    });
  }

  write(number, at, data) {
    this.device.queue.writeBuffer(this.bound[number], at, data);
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
