// Every block of memory that a program gives back is zeroed first, so that a token that was in a string, a buffer or a
// parser is gone with the last reference to it. The free(3) and realloc(3) of this target replace the C library's for
// all of the process: Swift's runtime, libcurl, OpenSSL and the C library itself.
#pragma once
#include <stdbool.h>

/// True with the GNU C library, and without a sanitizer, which has an allocator of its own.
bool cerasedheap_is_active(void);
