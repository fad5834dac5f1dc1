// Follows step.cu: the step with 16 arguments; and without one, on the words at the address that the macro WORDS holds.
extern "C" __global__ void step16(word *x, SEVEN(a), EIGHT(b)) { advance(x); }
extern "C" __global__ void fixed() { advance((word *)WORDS); }
