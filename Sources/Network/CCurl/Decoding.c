#include "CCurl.h"
#include <dlfcn.h>
#include <stdlib.h>

// The libraries are those that libcurl itself was linked with. Their headers are not needed otherwise.

struct zlib_stream {
    const uint8_t *next_in;
    unsigned avail_in;
    unsigned long total_in;
    uint8_t *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *message;
    void *state, *allocate, *release, *context;
    int data_type;
    unsigned long check, reserved;
};

struct zstd_input {
    const void *bytes;
    size_t size, position;
};

struct zstd_output {
    void *bytes;
    size_t size, position;
};

static struct {
    const char *(*zlibVersion)(void);
    int (*inflateInit2_)(struct zlib_stream *, int, const char *, int);
    int (*inflate)(struct zlib_stream *, int);
    int (*inflateEnd)(struct zlib_stream *);
    void *(*BrotliDecoderCreateInstance)(void *, void *, void *);
    int (*BrotliDecoderDecompressStream)(void *, size_t *, const uint8_t **, size_t *, uint8_t **, size_t *);
    void (*BrotliDecoderDestroyInstance)(void *);
    void *(*ZSTD_createDStream)(void);
    size_t (*ZSTD_DCtx_setParameter)(void *, int, int);
    size_t (*ZSTD_decompressStream)(void *, struct zstd_output *, struct zstd_input *);
    unsigned (*ZSTD_isError)(size_t);
    size_t (*ZSTD_freeDStream)(void *);
} library;

static bool has_zlib, has_brotli, has_zstd;

void ccurl_load_decoders(void) {
#define FIND(name) ((library.name = (__typeof__(library.name))dlsym(handle, #name)) != NULL)
    void *handle = dlopen("libz.so.1", RTLD_NOW | RTLD_NOLOAD);
    has_zlib = handle != NULL && FIND(zlibVersion) && FIND(inflateInit2_) && FIND(inflate) && FIND(inflateEnd);
    handle = dlopen("libbrotlidec.so.1", RTLD_NOW | RTLD_NOLOAD);
    has_brotli = handle != NULL && FIND(BrotliDecoderCreateInstance) && FIND(BrotliDecoderDecompressStream) &&
                 FIND(BrotliDecoderDestroyInstance);
    handle = dlopen("libzstd.so.1", RTLD_NOW | RTLD_NOLOAD);
    has_zstd = handle != NULL && FIND(ZSTD_createDStream) && FIND(ZSTD_DCtx_setParameter) &&
               FIND(ZSTD_decompressStream) && FIND(ZSTD_isError) && FIND(ZSTD_freeDStream);
#undef FIND
}

struct ccurl_decoder {
    int coding;
    struct zlib_stream zlib;
    void *other;
};

bool ccurl_decodes(int coding) {
    switch (coding) {
    case ccurl_brotli: return has_brotli;
    case ccurl_zstd: return has_zstd;
    default: return has_zlib;
    }
}

struct ccurl_decoder *ccurl_decoder_new(int coding) {
    if (!ccurl_decodes(coding)) return NULL;
    struct ccurl_decoder *decoder = calloc(1, sizeof *decoder);
    if (decoder == NULL) return NULL;
    decoder->coding = coding;
    switch (coding) {
    case ccurl_brotli: decoder->other = library.BrotliDecoderCreateInstance(NULL, NULL, NULL); break;
    case ccurl_zstd:
        decoder->other = library.ZSTD_createDStream();
        // ZSTD_d_windowLogMax: RFC 9659 allows HTTP a window of 8 MiB; the library's own limit is 128 MiB.
        if (decoder->other != NULL) (void)library.ZSTD_DCtx_setParameter(decoder->other, 100, 23);
        break;
    default: {
        // 15 is the largest window. 16 more is gzip's format, a negative number the one without a header.
        const int bits = coding == ccurl_gzip ? 31 : coding == ccurl_zlib ? 15 : -15;
        const int size = (int)sizeof decoder->zlib;
        if (library.inflateInit2_(&decoder->zlib, bits, library.zlibVersion(), size) == 0) return decoder;
    }
    }
    if (decoder->other != NULL) return decoder;
    free(decoder);
    return NULL;
}

void ccurl_decoder_free(struct ccurl_decoder *decoder) {
    if (decoder == NULL) return;
    switch (decoder->coding) {
    case ccurl_brotli: library.BrotliDecoderDestroyInstance(decoder->other); break;
    case ccurl_zstd: (void)library.ZSTD_freeDStream(decoder->other); break;
    default: (void)library.inflateEnd(&decoder->zlib);
    }
    free(decoder);
}

static unsigned clamped(size_t count) { return count < 1 << 30 ? (unsigned)count : 1 << 30; }

int ccurl_decode(struct ccurl_decoder *decoder, const uint8_t *in, size_t *in_count, uint8_t *out, size_t *out_count) {
    switch (decoder->coding) {
    case ccurl_brotli: {
        size_t unread = *in_count, room = *out_count;
        const int result =
            library.BrotliDecoderDecompressStream(decoder->other, &unread, &in, &room, &out, NULL);
        *in_count -= unread;
        *out_count -= room;
        return result == 0 ? ccurl_decoding_failed : result == 1 ? ccurl_decoding_ended : ccurl_decoding_goes_on;
    }
    case ccurl_zstd: {
        struct zstd_input input = {in, *in_count, 0};
        struct zstd_output output = {out, *out_count, 0};
        const size_t result = library.ZSTD_decompressStream(decoder->other, &output, &input);
        *in_count = input.position;
        *out_count = output.position;
        if (library.ZSTD_isError(result)) return ccurl_decoding_failed;
        return result == 0 ? ccurl_decoding_ended : ccurl_decoding_goes_on;
    }
    default: {
        struct zlib_stream *stream = &decoder->zlib;
        stream->next_in = in;
        stream->avail_in = clamped(*in_count);
        stream->next_out = out;
        stream->avail_out = clamped(*out_count);
        // Z_SYNC_FLUSH: as much output as possible.
        const int result = library.inflate(stream, 2);
        *in_count = (size_t)(stream->next_in - in);
        *out_count = (size_t)(stream->next_out - out);
        // Z_OK; Z_BUF_ERROR, if there was nothing to do; Z_STREAM_END.
        if (result == 0 || result == -5) return ccurl_decoding_goes_on;
        return result == 1 ? ccurl_decoding_ended : ccurl_decoding_failed;
    }
    }
}
