// Where bytes are in the memory of a process, for memory.py; needs root.
//
//   memory PID...   reads from standard input what to look for, each as its length (4 bytes, this machine's order) and its
//                   bytes, 12 at least; prints a line for each place where one of them is: its number, the PID, the
//                   address, and the mapping as /proc/PID/maps has it. The last line is "bytes N": how much was read.
//
// Every mapping that the process may read and write is looked through.
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { shortest = 12, longest = 8192, piece = 1 << 20, filterBits = 22 };

struct pattern {
    uint32_t length, next;
    uint8_t *bytes;
};

static struct pattern *patterns;
static uint32_t count, capacity;
// Patterns by their first eight bytes; 0 is none, n is the pattern n - 1.
static uint32_t buckets[1u << filterBits];

static uint32_t slot(const uint8_t *bytes) {
    uint64_t first;
    memcpy(&first, bytes, sizeof first);
    return (uint32_t)((first * 0x9E3779B97F4A7C15u) >> (64 - filterBits));
}

static void *checked(void *memory) {
    if (memory == NULL) abort();
    return memory;
}

static bool read_patterns(void) {
    uint32_t length;
    while (fread(&length, sizeof length, 1, stdin) == 1) {
        if (length < shortest || length > longest) return false;
        if (count == capacity) {
            capacity = capacity == 0 ? 1024 : capacity * 2;
            patterns = checked(realloc(patterns, capacity * sizeof *patterns));
        }
        struct pattern *pattern = &patterns[count++];
        pattern->length = length;
        pattern->bytes = checked(malloc(length));
        if (fread(pattern->bytes, length, 1, stdin) != 1) return false;
        uint32_t *bucket = &buckets[slot(pattern->bytes)];
        pattern->next = *bucket;
        *bucket = count;
    }
    return true;
}

// Looks at every place below `starts`; what begins there may end behind it.
static void search(const uint8_t *bytes, size_t starts, size_t size, uint64_t address, int pid, const char *mapping) {
    static const uint8_t nothing[4096];
    for (size_t place = 0; place < starts && place + shortest <= size; place++) {
        if (place % 4096 == 0 && place + 4096 <= starts && memcmp(bytes + place, nothing, 4096) == 0) {
            place += 4095;
            continue;
        }
        for (uint32_t each = buckets[slot(bytes + place)]; each != 0; each = patterns[each - 1].next) {
            const struct pattern *pattern = &patterns[each - 1];
            if (place + pattern->length <= size && memcmp(bytes + place, pattern->bytes, pattern->length) == 0)
                printf("%" PRIu32 " %d %" PRIx64 " %s\n", each - 1, pid, address + place, mapping);
        }
    }
}

static uint64_t search_process(int pid) {
    char path[64], line[4096];
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    int memory = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "re");
    if (memory < 0 || maps == NULL) {
        perror(path);
        exit(2);
    }
    uint8_t *buffer = checked(malloc(piece + longest));
    uint64_t total = 0;
    while (fgets(line, sizeof line, maps) != NULL) {
        uint64_t start, end;
        char rights[5];
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, rights) != 3) continue;
        if (rights[0] != 'r' || rights[1] != 'w') continue;
        line[strcspn(line, "\n")] = 0;
        while (start < end) {
            size_t starts = end - start < piece ? (size_t)(end - start) : piece;
            size_t wanted = end - start < piece + longest ? (size_t)(end - start) : piece + longest;
            ssize_t got = pread(memory, buffer, wanted, (off_t)start);
            // What was unmapped meanwhile is no memory any more.
            if (got <= 0) break;
            if ((size_t)got < starts) starts = (size_t)got;
            search(buffer, starts, (size_t)got, start, pid, line);
            total += starts;
            start += starts;
        }
    }
    free(buffer);
    fclose(maps);
    close(memory);
    return total;
}

int main(int argc, char *argv[]) {
    if (!read_patterns()) {
        fprintf(stderr, "what to look for cannot be read\n");
        return 2;
    }
    uint64_t total = 0;
    for (int index = 1; index < argc; index++) total += search_process(atoi(argv[index]));
    printf("bytes %" PRIu64 "\n", total);
    return 0;
}
