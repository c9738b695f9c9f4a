// Synchronization.Mutex takes and gives a contended lock inside the standard library and the kernel, where
// ThreadSanitizer does not look: what a lock protects then seems to race. Loaded before that library in sanitizer runs
// (LD_PRELOAD), this says what was missed. It changes nothing else: a race without a lock is still found.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))
// Synchronization._MutexHandle._lockSlow(UInt32) and ._unlockSlow()
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

extern void __tsan_acquire(void *) __attribute__((weak));
extern void __tsan_release(void *) __attribute__((weak));

typedef SWIFT void Lock(uint32_t, SELF void *);
typedef SWIFT void Unlock(SELF void *);
static Lock *lock;
static Unlock *unlock;

__attribute__((constructor)) static void find(void) {
    lock = (Lock *)dlsym(RTLD_NEXT, LOCK);
    unlock = (Unlock *)dlsym(RTLD_NEXT, UNLOCK);
}

SWIFT void lockSlow(uint32_t thread, SELF void *handle) __asm__(LOCK);
SWIFT void unlockSlow(SELF void *handle) __asm__(UNLOCK);

SWIFT void lockSlow(uint32_t thread, SELF void *handle) {
    lock(thread, handle);
    if (__tsan_acquire) __tsan_acquire(handle);
}

SWIFT void unlockSlow(SELF void *handle) {
    if (__tsan_release) __tsan_release(handle);
    unlock(handle);
}
