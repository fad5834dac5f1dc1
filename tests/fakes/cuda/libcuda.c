/* A CUDA driver for tests: one device, the host's memory, and a device clock that advances 1 us a launch.

   Launches take effect at once; only time is pretended, so that a stream can be held by the spin kernel and events can
   be ahead of the host. The kernels are known by their names; a module whose image is `so:PATH` is a shared library, its
   kernels are run by its functions `run_<name>` of four words, groups and threads, or of a pointer to as many words as
   its number `words_of_<name>` says, groups and threads. Environment: FAKE_CUDA_NO_DEVICE, FAKE_CUDA_VERSION,
   FAKE_CUDA_FAIL (launches fail), FAKE_CUDA_FAIL_WAIT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int result;
typedef uint64_t word;

enum { OK = 0, INVALID = 1, NO_DEVICE = 100, NOT_FOUND = 500, NOT_READY = 600, BAD_CAPTURE = 900 };
enum { LAUNCH_NS = 1000, WORDS = 256 };

struct module { uint32_t *state; void *library; };
struct function { struct module *module; char name[64]; };
struct node { struct function function; word values[64]; unsigned groups, threads; };
struct graph { struct node *nodes; size_t count, room; };
struct event { word time; };
struct parameters { struct function *f; unsigned dims[7]; void **values; void **extra; void *kernel, *context; };

static word busy_until[2]; /* of the default stream, which other streams do not wait for, and of the others */
static int stream_kind;    /* which of them the call is for */
unsigned fake_calls[6]; /* of cuLaunchKernel, cuGraphLaunch, cuStreamSynchronize, cuCtxSynchronize, cuEventRecord, */
                        /* cuEventSynchronize */
static struct graph *capturing;

static word now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (word)t.tv_sec * 1000000000u + (word)t.tv_nsec;
}

static int setting(const char *name, int fallback) {
    const char *text = getenv(name);
    return text ? atoi(text) : fallback;
}

static void work(word ns) {
    word begin = now();
    word *busy = &busy_until[stream_kind];
    *busy = (*busy > begin ? *busy : begin) + ns;
}

static void drain(word until) {
    while (now() < until) {
    }
}

static void drain_all(void) { for (int i = 0; i < 2; ++i) drain(busy_until[i]); }

static result waited(void) { return setting("FAKE_CUDA_FAIL_WAIT", 0) ? INVALID : OK; }

static void step(uint32_t *x, uint32_t times) {
    uint32_t scale = 1, shift = 0; /* all steps as one: the host must stay faster than the device that it pretends */
    for (uint32_t t = 0; t < times; ++t) {
        scale *= 1664525u;
        shift = shift * 1664525u + 1013904223u;
    }
    for (int i = 0; i < WORDS; ++i)
        x[i] = x[i] * scale + shift;
}

static const int *words_of(const struct function *f) {
    char symbol[80];
    snprintf(symbol, sizeof symbol, "words_of_%s", f->name);
    return dlsym(f->module->library, symbol);
}

static int parameters_of(const struct function *f) {
    const char *name = f->name;
    if (f->module->library) {
        const int *words = words_of(f);
        return words ? *words : 4;
    }
    if (!strcmp(name, "spin")) return 1;
    return !strcmp(name, "fused") ? 2 : atoi(name + 4);
}

static void run(struct node *node) {
    const char *name = node->function.name;
    if (node->function.module->library) {
        char symbol[80];
        word *v = node->values;
        snprintf(symbol, sizeof symbol, "run_%s", name);
        if (words_of(&node->function)) {
            void (*any)(word *, word, word) = (void (*)(word *, word, word))dlsym(node->function.module->library, symbol);
            any(v, node->groups, node->threads);
            work(LAUNCH_NS);
            return;
        }
        void (*kernel)(word, word, word, word, word, word) =
            (void (*)(word, word, word, word, word, word))dlsym(node->function.module->library, symbol);
        kernel(v[0], v[1], v[2], v[3], node->groups, node->threads);
        work(LAUNCH_NS);
        return;
    }
    if (!strcmp(name, "spin")) { work(node->values[0]); return; }
    if (!strcmp(name, "fused")) step((uint32_t *)node->values[0], (uint32_t)node->values[1]);
    else step(strcmp(name, "step0") ? (uint32_t *)node->values[0] : node->function.module->state, 1);
    work(LAUNCH_NS);
}

static void fill(struct node *node, struct function *f, void **values) {
    memset(node, 0, sizeof *node);
    node->function = *f;
    for (int i = 0; i < parameters_of(f); ++i)
        memcpy(&node->values[i], values[i], sizeof(word));
}

result cuInit(unsigned flags) { return setting("FAKE_CUDA_NO_DEVICE", 0) ? NO_DEVICE : OK; }
result cuDriverGetVersion(int *v) { *v = setting("FAKE_CUDA_VERSION", 13000); return OK; }
result cuDeviceGetCount(int *n) { *n = 1; return OK; }
result cuDeviceGet(int *d, int ordinal) { *d = ordinal; return ordinal ? INVALID : OK; }
result cuDeviceGetName(char *name, int size, int d) { snprintf(name, (size_t)size, "Fake GPU"); return OK; }
result cuDeviceGetUuid_v2(unsigned char *u, int d) { for (int i = 0; i < 16; ++i) u[i] = (unsigned char)i; return OK; }
result cuDeviceGetAttribute(int *v, int which, int d) { *v = which == 75 ? 9 : 0; return OK; }
static int retained;
result cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)0x10; ++retained; return OK; }
result cuDevicePrimaryCtxRelease_v2(int d) { --retained; return OK; }
result cuDevicePrimaryCtxGetState(int d, unsigned *flags, int *active) { *flags = 0; *active = retained > 0; return OK; }
result cuCtxSetCurrent(void *c) { return OK; }
result cuCtxSynchronize(void) { ++fake_calls[3]; drain_all(); return capturing ? BAD_CAPTURE : waited(); }

result cuModuleLoadData(struct module **m, const void *image) {
    const char *path = image;
    *m = calloc(1, sizeof **m);
    if (!strncmp(path, "so:", 3)) (*m)->library = dlopen(path + 3, RTLD_NOW | RTLD_LOCAL);
    return OK;
}
result cuModuleUnload(struct module *m) { free(m); return OK; }
result cuModuleGetFunction(struct function **f, struct module *m, const char *name) {
    if (!m->library && strcmp(name, "spin") && strcmp(name, "fused") && strncmp(name, "step", 4)) return NOT_FOUND;
    *f = calloc(1, sizeof **f); /* lives as long as the process: tests make few */
    (*f)->module = m;
    snprintf((*f)->name, sizeof (*f)->name, "%s", name);
    return OK;
}

result cuMemAlloc_v2(word *p, size_t size) {
    *p = (word)malloc(size);
    return OK;
}
result cuMemGetInfo_v2(size_t *free, size_t *total) {
    *free = *total = (size_t)1 << 30;
    return OK;
}
result cuMemFree_v2(word p) { free((void *)p); return OK; }
result cuMemcpyHtoD_v2(word to, const void *from, size_t size) { memcpy((void *)to, from, size); return OK; }
result cuMemcpyDtoH_v2(void *to, word from, size_t size) { drain_all(); memcpy(to, (void *)from, size); return waited(); }
result cuMemcpyDtoDAsync_v2(word to, word from, size_t size, void *s) {
    memcpy((void *)to, (void *)from, size);
    stream_kind = !!s;
    work(LAUNCH_NS);
    return OK;
}
result cuMemcpyDtoHAsync_v2(void *to, word from, size_t size, void *s) { memcpy(to, (void *)from, size); return OK; }

result cuStreamCreate(void **s, unsigned flags) { *s = malloc(1); return OK; }
result cuStreamDestroy_v2(void *s) { free(s); return OK; }
result cuStreamSynchronize(void *s) { ++fake_calls[2]; drain(busy_until[!!s]); return capturing ? BAD_CAPTURE : waited(); }

result cuEventCreate(struct event **e, unsigned flags) { *e = calloc(1, sizeof **e); return OK; }
result cuEventDestroy_v2(struct event *e) { free(e); return OK; }
result cuEventRecord(struct event *e, void *s) {
    word t = now(), busy = busy_until[!!s];
    ++fake_calls[4];
    e->time = busy > t ? busy : t;
    return OK;
}
result cuEventQuery(struct event *e) { return now() >= e->time ? OK : NOT_READY; }
result cuEventSynchronize(struct event *e) { ++fake_calls[5]; drain(e->time); return waited(); }
result cuEventElapsedTime(float *ms, struct event *a, struct event *b) { *ms = (float)(b->time - a->time) / 1e6f; return OK; }

result cuLaunchKernel(struct function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned shared, void *stream, void **values, void **extra) {
    struct node node;
    ++fake_calls[0];
    if (getenv("FAKE_CUDA_FAIL")) return INVALID;
    if (!f || gy != 1 || gz != 1 || by != 1 || bz != 1 || shared || extra) return INVALID;
    if (!f->module->library && strcmp(f->name, "spin") && (gx != 4 || bx != 64)) return INVALID;
    fill(&node, f, values);
    node.groups = gx;
    node.threads = bx;
    stream_kind = !!stream;
    if (!capturing) { run(&node); return OK; }
    if (capturing->count == capturing->room) {
        capturing->room = capturing->room ? 2 * capturing->room : 16;
        capturing->nodes = realloc(capturing->nodes, capturing->room * sizeof *capturing->nodes);
    }
    capturing->nodes[capturing->count++] = node;
    return OK;
}

result cuStreamBeginCapture_v2(void *s, int mode) {
    if (!s || capturing) return BAD_CAPTURE;
    capturing = calloc(1, sizeof *capturing);
    return OK;
}
result cuStreamEndCapture(void *s, struct graph **g) { *g = capturing; capturing = NULL; return *g ? OK : BAD_CAPTURE; }
result cuGraphGetNodes(struct graph *g, word *nodes, size_t *count) {
    if (nodes) for (size_t i = 0; i < *count && i < g->count; ++i) nodes[i] = i + 1;
    *count = g->count;
    return OK;
}
result cuGraphInstantiateWithFlags(struct graph **exec, struct graph *g, unsigned long long flags) {
    *exec = malloc(sizeof **exec);
    **exec = *g;
    (*exec)->nodes = malloc(g->count * sizeof *g->nodes + 1);
    if (g->count) memcpy((*exec)->nodes, g->nodes, g->count * sizeof *g->nodes);
    return OK;
}
result cuGraphUpload(struct graph *exec, void *s) { return OK; }
result cuGraphLaunch(struct graph *exec, void *s) {
    ++fake_calls[1];
    stream_kind = !!s;
    for (size_t i = 0; i < exec->count; ++i) run(&exec->nodes[i]);
    return OK;
}
result cuGraphExecKernelNodeSetParams_v2(struct graph *exec, word node, const struct parameters *p) {
    if (!node || node > exec->count || p->dims[0] != 4 || p->dims[3] != 64) return INVALID;
    fill(&exec->nodes[node - 1], p->f, p->values);
    return OK;
}
result cuGraphExecDestroy(struct graph *g) { free(g->nodes); free(g); return OK; }
result cuGraphDestroy(struct graph *g) { free(g->nodes); free(g); return OK; }
result cuGetErrorName(int code, const char **name) {
    *name = code == INVALID ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR";
    return OK;
}
