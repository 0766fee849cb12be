/* Memory for arrays of numpy, each between two pages that may not be touched; tools/fuzz/guard.py says more.

   Written in C because numpy frees arrays while an exception is set, when no Python code may run. numpy holds the GIL for each call. */

#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, SLOTS = 4096, MOST_LARGE = 8192, PATTERN = 0xA5 };
static const size_t LARGEST = (size_t)1 << 31;

/* An array of at most a page takes a slot: a page of an arena in which every other page is closed. A larger one has maps of its own:
   a page with its size, a closed page, its data, a closed page. */
static char *arena;
static uint16_t free_slots[SLOTS];
static size_t slot_size[SLOTS], slots_left, large;

/* How many arrays were guarded, and how many had something written beside them when they were freed. */
size_t guard_made, guard_damaged, guard_damaged_size;

typedef struct { size_t size, length; } Header;

int guard_begin(void) {
    if (arena) return 0;
    char *start = mmap(NULL, (2 * (size_t)SLOTS + 1) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return -1;
    for (size_t n = 0; n < SLOTS; n++) {
        if (mprotect(start + (2 * n + 1) * PAGE, PAGE, PROT_READ | PROT_WRITE)) return -1;
        free_slots[slots_left++] = (uint16_t)n;
    }
    arena = start;
    return 0;
}

/* Which side of an array is exact is drawn: if both took turns, arrays that are made in pairs would always have the same side exact.
   Three times of four it is the end, because more code counts one too many than one too few. */
static uint64_t drawn;

void guard_seed(uint64_t seed) { drawn = seed; }

static int at_start(void) { /* SplitMix64 */
    uint64_t z = drawn += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z >> 62 == 0;
}

static char *place(char *pages, size_t length, size_t size) {
    guard_made++;
    char *at = at_start() ? pages : pages + length - size;
    memset(at == pages ? pages + size : pages, PATTERN, length - size);
    return at;
}

void *guard_malloc(void *context, size_t size) {
    (void)context;
    if (!size) size = 1;
    if (size <= PAGE && slots_left) {
        size_t n = free_slots[--slots_left];
        slot_size[n] = size;
        return place(arena + (2 * n + 1) * PAGE, PAGE, size);
    }
    if (size > LARGEST || large >= MOST_LARGE) return NULL;
    size_t length = (size + PAGE - 1) / PAGE * PAGE;
    char *start = mmap(NULL, length + 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return NULL;
    if (mprotect(start, PAGE, PROT_READ | PROT_WRITE) || mprotect(start + 2 * PAGE, length, PROT_READ | PROT_WRITE)) {
        munmap(start, length + 3 * PAGE);
        return NULL;
    }
    *(Header *)start = (Header){size, length};
    large++;
    return place(start + 2 * PAGE, length, size);
}

void *guard_calloc(void *context, size_t count, size_t each) {
    size_t size;
    if (__builtin_mul_overflow(count, each, &size)) return NULL;
    char *at = guard_malloc(context, size);
    if (at && size <= PAGE) memset(at, 0, size); /* the pages of a larger one are new */
    return at;
}

static int in_arena(char *at) { return at >= arena && at < arena + (2 * (size_t)SLOTS + 1) * PAGE; }

static size_t slot_of(char *at) { return (size_t)(at - arena) / PAGE / 2; }

static Header *header_of(char *at) { return (Header *)((uintptr_t)at / PAGE * PAGE - 2 * PAGE); }

void guard_free(void *context, void *freed, size_t told) {
    (void)context, (void)told;
    char *at = freed;
    if (!at) return;
    int small = in_arena(at);
    size_t size = small ? slot_size[slot_of(at)] : header_of(at)->size, length = small ? PAGE : header_of(at)->length;
    char *pages = (char *)((uintptr_t)at / PAGE * PAGE);
    char *beside = at == pages ? pages + size : pages;
    for (size_t n = 0; n < length - size; n++)
        if ((unsigned char)beside[n] != PATTERN) {
            guard_damaged++;
            guard_damaged_size = size;
            break;
        }
    if (small) {
        free_slots[slots_left++] = (uint16_t)slot_of(at);
    } else {
        munmap(pages - 2 * PAGE, length + 3 * PAGE);
        large--;
    }
}

void *guard_realloc(void *context, void *old, size_t size) {
    char *at = guard_malloc(context, size);
    if (at && old) {
        size_t before = in_arena(old) ? slot_size[slot_of(old)] : header_of(old)->size;
        memcpy(at, old, before < size ? before : size);
        guard_free(context, old, 0);
    }
    return at;
}
