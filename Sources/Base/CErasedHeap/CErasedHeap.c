#define _GNU_SOURCE
#include "CErasedHeap.h"
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define HAS_OTHER_ALLOCATOR 1
#endif
#endif

#if !defined(__GLIBC__) || defined(HAS_OTHER_ALLOCATOR)

bool cerasedheap_is_active(void) { return false; }

#else

// Other libraries find whichever is the first of the process.
bool cerasedheap_is_active(void) { return dlsym(RTLD_DEFAULT, "free") == (void *)free; }

// The allocator itself, under the names that programs with functions like those below are to use.
extern void *__libc_malloc(size_t);
extern void __libc_free(void *);

// The whole pages of a large block go back to the kernel: overwriting a block that is much larger than what was ever
// written to it would take all of its memory.
static void erase(char *block, size_t size) {
    static const size_t large = 1 << 20;
    if (size < large) {
        explicit_bzero(block, size);
        return;
    }
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    char *first = (char *)(((uintptr_t)block + page - 1) & ~(page - 1));
    char *last = (char *)((uintptr_t)(block + size) & ~(page - 1));
    if (madvise(first, (size_t)(last - first), MADV_DONTNEED) != 0) explicit_bzero(first, (size_t)(last - first));
    explicit_bzero(block, (size_t)(first - block));
    explicit_bzero(last, (size_t)(block + size - last));
}

// The usable size may be more than was asked for; Swift's arrays use it.
static void release(void *block) {
    if (block == NULL) return;
    erase(block, malloc_usable_size(block));
    __libc_free(block);
}

// The C library's own would give back a part of a block, or move one, without a call to free.
static void *resize(void *block, size_t size) {
    if (block == NULL) return __libc_malloc(size);
    if (size == 0) {
        release(block);
        return NULL;
    }
    size_t held = malloc_usable_size(block);
        // A block that fits well enough stays.
    if (size <= held && held - size <= held / 2) {
        erase((char *)block + size, held - size);
        return block;
    }
    void *moved = __libc_malloc(size);
    if (moved == NULL) return NULL;
    memcpy(moved, block, size < held ? size : held);
    release(block);
    return moved;
}

// A static executable has the C library's definitions too, which the linker prefers to weak ones. It leads the calls to
// the names below (--wrap=free, --wrap=realloc).
__attribute__((weak)) void free(void *block) { release(block); }
__attribute__((weak)) void *realloc(void *block, size_t size) { return resize(block, size); }

void __wrap_free(void *block);
void __wrap_free(void *block) { release(block); }
void *__wrap_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size) { return resize(block, size); }

#endif
