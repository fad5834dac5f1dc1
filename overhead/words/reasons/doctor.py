"""What ``overhead doctor`` finds on a machine."""

TEMPLATES = {
    "cores-free": "{free:.1f} of {cores} (load {load:.2f})",
    "cores-allowed": "{cores:g} cores",
    "gpus-busy": "{percent} % busy",
    "interpreter-without-checks": "without debug checks",
    "interrupts-served-by": "served by CPU core {processors}; overhead measures on other cores",
}
