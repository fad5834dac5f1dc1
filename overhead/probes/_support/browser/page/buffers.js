// A program's buffers on a device: made, bound in group 0 by their number, written, read back.

export class Buffers {
  // `buffers`: kind, size in bytes and perhaps first words of each; `states`: how many there are of the first.
  constructor(device, { buffers, states = 1 }) {
    const { COPY_DST, COPY_SRC, MAP_READ, STORAGE, UNIFORM } = GPUBufferUsage;
    this.device = device;
    this.kinds = buffers;
    this.usages = {
      "storage": STORAGE | COPY_SRC | COPY_DST, "read-only-storage": STORAGE | COPY_DST, "uniform": UNIFORM | COPY_DST,
    };
    this.owned = [];
    const [first, ...others] = buffers;
    this.states = Array.from({ length: states }, () => this.made(first));
    this.bound = [this.states[0], ...others.map((one) => this.made(one))];
    const readable = buffers.filter(({ kind }) => kind === "storage").reduce((sum, { size }) => sum + size, 0);
    this.staging = this.make(readable, MAP_READ | COPY_DST);
    // Whole buffers: what is known when the layout is made is not checked again at each dispatch.
    this.layout = device.createBindGroupLayout({
      entries: buffers.map(({ kind, size }, binding) => (
        { binding, visibility: GPUShaderStage.COMPUTE, buffer: { type: kind, minBindingSize: size } })),
    });
  }

  make(size, usage) {
    const buffer = this.device.createBuffer({ size, usage });
    this.owned.push(buffer);
    return buffer;
  }

  // One more buffer of this kind.
  made({ kind, size, data }) {
    const buffer = this.make(size, this.usages[kind]);
    if (data) this.device.queue.writeBuffer(buffer, 0, data);
    return buffer;
  }

  // A bind group of all, with other buffers at the numbers in `instead`.
  bind(instead = {}) {
    return this.device.createBindGroup({
      layout: this.layout,
      entries: this.bound.map((buffer, binding) => ({ binding, resource: { buffer: instead[binding] ?? buffer } })),
    });
  }

  write(number, at, data) {
    this.device.queue.writeBuffer(this.bound[number], at, data);
  }

  // The first `sizes` bytes of these buffers, one after another, once all that was submitted is done.
  async copied(buffers, sizes) {
    const encoder = this.device.createCommandEncoder();
    let all = 0;
    for (let i = 0; i < buffers.length; i++) {
      encoder.copyBufferToBuffer(buffers[i], 0, this.staging, all, sizes[i]);
      all += sizes[i];
    }
    this.device.queue.submit([encoder.finish()]);
    await this.staging.mapAsync(GPUMapMode.READ, 0, all);
    const bytes = this.staging.getMappedRange(0, all).slice(0);
    this.staging.unmap();
    return bytes;
  }

  // The bytes of the buffers of these numbers.
  fetch(numbers) {
    return this.copied(numbers.map((i) => this.bound[i]), numbers.map((i) => this.kinds[i].size));
  }

  destroy() {
    for (const buffer of this.owned) buffer.destroy();
  }
}
