// Every block of memory that a program gives back is zeroed first.
//
// Whoever depends on this target has its free(3) and realloc(3) in place of the C library's, for all of the process: Swift's
// runtime, libcurl, OpenSSL and the C library itself. So a token that was in a string, a buffer or a parser is
// gone with the last reference to it, whoever made the copy.
#pragma once
#include <stdbool.h>

/// True if that is so here, for every library: with the GNU C library, and without a sanitizer, which has an allocator of
/// its own.
bool cerasedheap_is_active(void);
