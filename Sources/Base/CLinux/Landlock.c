#define _GNU_SOURCE
#include "CLinux.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int allow_beneath(int rules, const char *path, uint64_t access) {
    struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = open(path, O_PATH | O_CLOEXEC)};
    // What is not there cannot be opened either.
    if (rule.parent_fd < 0) return 0;
    struct stat status;
    // The rights of folders are invalid for a file.
    if (fstat(rule.parent_fd, &status) == 0 && !S_ISDIR(status.st_mode)) rule.allowed_access &= LANDLOCK_ACCESS_FS_READ_FILE;
    int code = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0 ? 0 : errno;
    close(rule.parent_fd);
    return code;
}

int clinux_confine_files(const char *readable, const char *changeable) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 0) return errno;
    // All that the first version knows, links between folders (from version 2) and truncation (from 3).
    struct landlock_ruleset_attr handled = {.handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1};
    if (version >= 2) handled.handled_access_fs |= 1 << 13;
    if (version >= 3) handled.handled_access_fs |= 1 << 14;
    char *paths = strdup(readable);
    int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
    int code = rules < 0 || paths == NULL ? errno : 0;
    const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    char *rest = paths;
    for (char *path; code == 0 && (path = strsep(&rest, ":")) != NULL;) code = allow_beneath(rules, path, reading);
    if (code == 0 && changeable != NULL) {
        code = allow_beneath(rules, changeable, reading | LANDLOCK_ACCESS_FS_REMOVE_FILE);
    }
    if (code == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) code = errno;
    if (code == 0 && syscall(SYS_landlock_restrict_self, rules, 0) != 0) code = errno;
    if (rules >= 0) close(rules);
    free(paths);
    return code;
}
