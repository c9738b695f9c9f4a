#define _GNU_SOURCE
#include "CErasedHeap.h"
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

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

// All that the block's owner may have written to, which may be more than was asked for (Swift's arrays use it).
static void release(void *block) {
    if (block == NULL) return;
    explicit_bzero(block, malloc_usable_size(block));
    __libc_free(block);
}

// The C library's own would give a part of a block back, or move one, without a call to free.
static void *resize(void *block, size_t size) {
    if (block == NULL) return __libc_malloc(size);
    if (size == 0) {
        release(block);
        return NULL;
    }
    size_t held = malloc_usable_size(block);
    // A block that fits well enough stays. What it held behind its new end is of no use to anybody.
    if (size <= held && held - size <= held / 2) {
        explicit_bzero((char *)block + size, held - size);
        return block;
    }
    void *moved = __libc_malloc(size);
    if (moved == NULL) return NULL;
    memcpy(moved, block, size < held ? size : held);
    release(block);
    return moved;
}

// A static executable has the C library's definitions in it too, which the linker prefers to weak ones. It leads the calls
// to the names below (--wrap=free, --wrap=realloc).
__attribute__((weak)) void free(void *block) { release(block); }
__attribute__((weak)) void *realloc(void *block, size_t size) { return resize(block, size); }

void __wrap_free(void *block);
void __wrap_free(void *block) { release(block); }
void *__wrap_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size) { return resize(block, size); }

#endif
