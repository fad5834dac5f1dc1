"""Why a stack, a device or a case cannot be measured, or is not verified, and what would add it."""

TEMPLATES = {
    "no-such-variant": "{workload} has no variant like this: {text}",
    "elements-disagree": (
        "not all elements ran the same number of steps: between {least} and {most}"
    ),
    "chain-without-reference": (
        "nothing compared the chain with the reference: return verified(chain) from open()"
    ),
    "differs-from-reference": "differs from the reference: {why} (seed {seed})",
    "not-written-in-language": "nobody wrote this workload in this language",
    "no-kernel-in-language": "{workload} has no {language}: {why}",
    "no-body-in-language": "{workload} has no body {body} in {language}",
    "part-of-a-unit": "{units} times {size} steps ran, and {rest} steps more",
    "opencl-finds-no-device": "OpenCL finds no device: {text}",
    "device-is-another-now": "device {device} is no longer {adapter}",
    "install-extras": "{extras:install}",
    "install-opencl-driver": (
        "install an OpenCL driver (for the processor, on Debian and Ubuntu: apt install"
        " pocl-opencl-icd)"
    ),
    "install-opencl": (
        "{extras:install}, and an OpenCL driver (for the processor, on Debian and Ubuntu: apt"
        " install pocl-opencl-icd)"
    ),
    "library-cannot-do-this": "the library cannot do this here",
    "package-does-not-import": "{package} does not import: {text}",
    "library-does-not-import": "a library does not import: {text}",
    "no-such-parameter": "this stack has no parameter {parameters}",
    "no-such-parameter-value": "{parameter} cannot be {value}",
    "pattern-not-for-wgsl": (
        "WGSL of a workload runs as one-pass, per-submit or fused, not as {pattern}"
    ),
    "library-exports-no-symbol": "the library has no function {symbol}",
    "calling-convention-unknown": (
        "compiled code cannot call this library on {processor}: how arguments are passed there is"
        " not known"
    ),
    "numba-does-not-load": "numba does not load: {text}",
    "numba-cannot-compile": "numba cannot compile a loop: {text}",
    "file-cannot-be-imported": "{path} cannot be imported",
    "numpy-has-no-such-case": "NumPy has no case {case}",
    "mlx-has-no-pattern": "MLX has no {pattern}",
    "install-mlx": '{extras:install} (for an NVIDIA GPU: pip install "mlx[cuda13]")',
    "queue-has-no-pattern": "this queue has no {pattern}",
    "unit-exceeds-queue": "the {launches} launches do not fit into half of the queue",
    "no-such-foreign-call": "there is no {case}: call is one of {calls}, and it decides the caller",
    "no-plain-reference-count": "this Python has no plain reference count in its objects",
    "values-read-back": "{values} values were read back; {expected} were expected",
    "values-disagree": (
        "{wrong} of {values} values disagree: element 0 ran {first_steps} steps, element {element}"
        " ran {element_steps}"
    ),
    "cupy-arrays-have-no-pattern": "CuPy's array operations have no {pattern}",
    "stack-has-no-pattern": "this stack has no {pattern}",
    "nvidia-driver-shows-no-device": "the NVIDIA driver shows no device to this process",
    "see-visible-devices": "look at the variable CUDA_VISIBLE_DEVICES",
    "nvidia-driver-exports-no-symbol": "the NVIDIA driver is too old: it has no function {symbol}",
    "no-nvidia-driver": "no NVIDIA driver is installed",
    "nvidia-driver-finds-no-device": "the NVIDIA driver finds no device",
    "nvidia-driver-does-not-start": "the NVIDIA driver does not start: {text}",
    "see-nvidia-smi": "run nvidia-smi and read its message",
    "nvidia-driver-too-old": "the NVIDIA driver supports CUDA {version}; 12.0 or newer is needed",
    "install-cuda": "{extras:install} (if the driver is for CUDA 12: {older:install})",
    "install-nvidia-driver": "install NVIDIA's driver: https://www.nvidia.com/drivers",
    "numba-cuda-is-of-numba": "numba.cuda comes from numba itself, not from the package numba-cuda",
    "install-numba-cuda": "{extras:install} (numba-cuda[cu12], if the driver is for CUDA 12)",
    "nvrtc-does-not-load": "NVRTC does not load: {text}",
    "nvrtc-failed": "NVRTC: {text}",
    "driver-call-failed": "a driver call failed with {error}",
    "pattern-has-no-caller": "{pattern} cannot be called by {caller}",
    "pattern-not-for-cuda-c": "CUDA C of a workload does not run as {pattern}",
    "node-update-failed": "cuGraphExecKernelNodeSetParams failed: {error}",
    "captured-launches-differ": (
        "{launches} launches were captured, but the graph has {nodes} nodes"
    ),
    "native-caller-adds-tensor": (
        "compiled code adds a tensor that was made before, one operation each step"
    ),
    "torch-skipped-graph": "torch.compile with {mode} made no CUDA graph",
    "tensor-return-unknown": "how a function returns a Tensor on {processor} is not known",
    "libtorch-call-failed": "{symbol} failed",
    "libtorch-exports-no-symbol": "this libtorch has no function {symbol}",
    "windows-mangles-otherwise": "on Windows the compiled names of the operators differ",
    "no-libtorch-cpu": "torch {version} comes without libtorch_cpu",
    "torch-too-old": "torch {version} is older than 2.6",
    "torch-reaches-no-cuda": "torch {version} reaches no CUDA device",
    "install-cuda-torch": "install a CUDA build of torch: https://pytorch.org/get-started/locally",
    "torch-compile-needs-compiler": "torch.compile needs a C++ compiler on the CPU",
    "first-loss-differs": "the first loss is {loss}; float64 gives {reference}",
    "loss-is-no-number": "the loss is {loss}",
    "losses-differ": "the sum of the losses is {total}; {steps} steps give {expected}",
    "call-ran-other-steps": "one call ran {steps} steps, not {expected}",
    "differs-from-reference-at": "differs from the reference: {why}",
    "adapter-is-another-now": "adapter {index} is no longer {adapter}",
    "vulkan-has-no-caller": "Vulkan cannot be called by {caller} here",
    "vulkan-has-no-pattern": "Vulkan has no {pattern} here",
    "per-k-takes-k-to-4096": (
        "only per-k takes k, the number of dispatches in a submission: 2 to 4096"
    ),
    "replay-unit-is-node": "replay counts nodes",
    "independent-rotates-sets": (
        "independent dispatches need several descriptor sets, each with a buffer of its own"
    ),
    "one-descriptor-set": "{pattern} has one descriptor set",
    "driver-has-no-function": "the driver has no {function}",
    "vulkan-call-failed": "a Vulkan call failed: {result}",
    "no-vulkan-loader": "there is no Vulkan loader here",
    "no-vulkan-device-computes": "no Vulkan driver has a device that can compute",
    "vulkan-loader-finds-no-driver": "the Vulkan loader finds no driver",
    "install-vendor-driver": "install the GPU vendor's driver",
    "vulkan-package-does-not-import": "the package vulkan does not import: {text}",
    "queue-has-no-timestamps": "this queue has no timestamps",
    "device-clock-stands-still": "the device's clock stands still",
    "device-timestamps-wrong": (
        "the device's timestamps are wrong: they show {span_ns:.0f} ns for {steps:,} steps"
    ),
    "device-time-under-quanta": (
        "{span_ns:.0f} ns on the device are too short for a clock with steps of {quantum_ns:.0f} ns"
        " ({quanta} steps are needed)"
    ),
    "limit-too-low": "{limit} is {offered:,}; {missing:,} more are needed",
    "wgpu-native-validates": "wgpu-native always validates",
    "dawn-bounds-no-loops": "Dawn has no option that limits loops",
    "reading-back-failed": "reading back: {kind}: {text}",
    "stack-refuses-driver": "{stack} does not accept the driver: {text}",
    "no-driver-with-adapter": "no driver has an adapter, or there is no Vulkan loader",
    "adapter-is-gone": "{adapter} ({api}) is no longer there",
    "use-mac-with-metal": "a Mac whose GPU supports Metal",
    "newer-driver": "install a newer driver",
    "newer-driver-or-chromium": (
        "install a newer driver; or apt install chromium, whose SwiftShader works too"
    ),
    "errors-reported": "{stack} reported {errors} errors; the first: {text}",
    "stack-exports-no-symbol": "{stack} has no function {symbol}",
    "metal-wait-in-steps": "on Metal wgpu-native waits in steps of a millisecond",
    "struct-by-value-unknown": (
        "how wgpuQueueOnSubmittedWorkDone takes its argument is known only on x86-64"
    ),
    "package-not-installed": "the Python package {package} is not installed",
    "package-does-not-load": "{package} does not load: {text}",
    "adapter-has-no-timestamps": "the adapter has no timestamp queries",
    "adapter-time-under-quanta": (
        "{span_ns:.0f} ns on the device are too short for a clock with steps of {quantum_ns:g} ns"
        " ({quanta} steps are needed)"
    ),
    "adapter-timestamps-wrong": (
        "the adapter's timestamps are wrong: they show {span_ns:.0f} ns for {steps:,} steps"
    ),
    "adapter-timestamps-stand": "the adapter's timestamps do not change",
    "adapter-has-no-f16": "the adapter has no shader-f16",
    "device-binds-less": "the device cannot bind a buffer of {bytes} bytes",
    "webgpu-has-no-pattern": "WebGPU compute has no {pattern}",
    "no-such-caller": "this stack cannot be called by {caller}",
    "per-k-takes-k": "only per-k takes k, the number of dispatches in a submission: at least 2",
    "independent-rotates-groups": (
        "independent dispatches need several bind groups, each with a buffer of its own"
    ),
    "fused-has-one-group": "a fused kernel is one dispatch with one bind group",
    "reading-needs-python": "reading a value back needs Python",
    "measured-from-python-alone": (
        "fresh bind groups and indirect dispatches are measured only from Python"
    ),
    "browser-refuses": "{browser}: {text}",
    "install-chromium": "install Chromium, Chrome or Edge (Debian: apt install chromium)",
    "install-firefox": "install Firefox (Debian: apt install firefox-esr)",
    "page-ran-in-other-browser": "the page ran in {browser}, not in {wanted}",
    "page-got-other-kernels": "the page got other kernels: {kernels}",
    "page-answered-for-other-n": (
        "the page answered for other lengths of chains than it was asked for"
    ),
    "buffers-read-back": "{buffers} buffers were read back",
    "page-runs-step-from-javascript": (
        "the page runs the step from JavaScript; it does not run {workload} by {caller}"
    ),
    "page-has-no-such-case": "the page has no such case: {text}",
    "independent-in-page": (
        "in a page, independent dispatches need several bind groups and one wait for many"
        " dispatches"
    ),
    "pattern-brings-wait": "{pattern} has its own wait",
    "per-k-in-page": "only per-k takes k, which is at least 2",
    "plan-of-page": "the page's own plan",
    "variable-names-no-program": "the variable {variable} names no program: {named}",
    "set-variable-to-browser": "set {variable} to a browser's program",
    "no-browser-found": "no browser {browser} was found",
    "install-browser": (
        "install the browser, or set the variable {variable} to the path of its program"
    ),
    "page-has-no-caller": "in a page the calls come from JavaScript, not from {caller}",
    "browser-closed": "the browser is closed",
    "browser-silent": "{browser} gave no answer for {limit_s:.0f} s",
    "browser-not-started": "{browser} could not be started: {text}",
    "browser-opened-no-page": "{browser} did not open the page within {limit_s:.0f} s",
    "browser-ended": "{browser} ended by itself (exit code {exit_code})",
    "compile-time-limit": (
        "the compiler reached its time limit after {seconds:.1f} s, with {mib:,.0f} MiB"
    ),
    "compile-memory-limit": (
        "the compiler reached its memory limit after {seconds:.1f} s, with {mib:,.0f} MiB"
    ),
    "compile-died": "the compiler died after {seconds:.1f} s, with {mib:,.0f} MiB: {why}",
    "compile-failed": "the compiler failed after {seconds:.1f} s, with {mib:,.0f} MiB: {kind}",
    "registers-nothing": "it registers no stack and no workload",
    "path-not-utf8": "the path is not UTF-8: rename the file",
    "no-such-file": "no such file",
    "not-a-python-file": "not a Python file",
    "plugin-replaces": (
        "{path} has the same {kind} {name} as the installed package {package}; the file is used"
    ),
    "cannot-search-devices": "it cannot search for devices",
    "package-unusable": "package {package}: {why}",
    "ended-while-imported": "it ended while it was imported: {why}",
    "after-steps": "after {steps} steps",
    "page-gave-other-size": "the page gave {bytes} bytes; {expected} were expected",
    "in-the-page": "in the page: {text}",
    "nvrtc-refuses": "NVRTC does not compile {kernel} for {architecture}: {text}",
    "no-memory-type": "no memory type in {allowed} has the properties {properties}",
}
