"""What ``overhead doctor`` finds on a machine."""

TEMPLATES = {
    "cores-free": "{free:.1f} of {cores} (load {load:.2f})",
    "cores-allowed": "{cores:g} cores",
    "gpus-busy": "{percent} % busy",
    "interrupts-served-by": "served by processor {processors}",
}
