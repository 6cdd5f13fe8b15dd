/* Records what a process does to the files of one folder, in the order in which it does it.

   Loaded with LD_PRELOAD. RAVEL_CUT_ROOT names the folder, RAVEL_CUT_LOG the record (tests/powercut/recording.py reads it).
   Each operation and its entry are made under one lock of all recorded processes, so the record's order is the true one.
   Writes through mmap are not seen; SQLite makes them in its -shm file alone, which it rebuilds after a crash. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

struct entry {
    char op;
    uint8_t unused;
    uint16_t path_size, other_size, mode;
    uint32_t data_size, pid;
    uint64_t inode, offset;
} __attribute__((packed));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_size;
static int log_handle = -1;

#define REAL(name) ((__typeof__(&name))real(#name))
static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static void open_log(void) {
    const char *path = getenv("RAVEL_CUT_LOG");
    log_handle = path ? REAL(open)(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
}

/* A forked child shares the parent's open file, and so its flock: it needs one of its own. */
static void after_fork(void) {
    pthread_mutex_init(&lock, NULL);
    if (log_handle >= 0) {
        REAL(close)(log_handle);
        open_log();
    }
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("RAVEL_CUT_ROOT");
    if (!path || !realpath(path, root)) return;
    root_size = strlen(root);
    open_log();
    pthread_atfork(NULL, NULL, after_fork);
}

static void hold(void) {
    pthread_mutex_lock(&lock);
    while (flock(log_handle, LOCK_EX) < 0 && errno == EINTR) {}
}

static void release(void) {
    int kept = errno;
    flock(log_handle, LOCK_UN);
    pthread_mutex_unlock(&lock);
    errno = kept;
}

static int is_within(const char *path) {
    return log_handle >= 0 && root_size && !strncmp(path, root, root_size) && (!path[root_size] || path[root_size] == '/');
}

/* The path of an open file, if it is within. */
static int path_of(int handle, char *path) {
    char link[64];
    if (log_handle < 0 || handle == log_handle) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return is_within(path);
}

/* The absolute path that a call names, if it is within: links are followed in its folder, not in its last part. */
static int resolve(int folder, const char *name, char *path) {
    char joined[2 * PATH_MAX], parent[PATH_MAX];
    int kept = errno, found = 0;
    if (log_handle < 0) return 0;
    if (name[0] == '/') snprintf(joined, sizeof joined, "%s", name);
    else if (folder == AT_FDCWD) {
        if (!getcwd(parent, PATH_MAX)) return 0;
        snprintf(joined, sizeof joined, "%s/%s", parent, name);
    } else {
        if (!path_of(folder, parent)) return 0;
        snprintf(joined, sizeof joined, "%s/%s", parent, name);
    }
    size_t end = strlen(joined);
    while (end > 1 && joined[end - 1] == '/') joined[--end] = 0;
    char *slash = strrchr(joined, '/');
    if (slash && slash != joined) {
        *slash = 0;
        if (realpath(joined, parent)) {
            found = snprintf(path, PATH_MAX, "%s/%s", parent, slash + 1) < PATH_MAX && is_within(path);
        }
    }
    errno = kept;
    return found;
}

static void note(char op, const char *path, const char *other, uint64_t inode, uint64_t offset, unsigned mode,
                 const struct iovec *parts, int count, size_t size) {
    static struct iovec all[IOV_MAX];
    int kept = errno;
    struct entry head = {op, 0, path ? strlen(path) : 0, other ? strlen(other) : 0, mode, size, getpid(), inode, offset};
    int used = 0;
    all[used++] = (struct iovec){&head, sizeof head};
    if (path) all[used++] = (struct iovec){(void *)path, head.path_size};
    if (other) all[used++] = (struct iovec){(void *)other, head.other_size};
    size_t whole = sizeof head + head.path_size + head.other_size + size;
    for (int i = 0; i < count && size && used < IOV_MAX; i++) {
        size_t taken = parts[i].iov_len < size ? parts[i].iov_len : size;
        all[used++] = (struct iovec){parts[i].iov_base, taken};
        size -= taken;
    }
    if (size || REAL(writev)(log_handle, all, used) != (ssize_t)whole) {
        static const char said[] = "the record of a power cut test cannot be written\n";
        REAL(write)(2, said, sizeof said - 1);
        abort();
    }
    errno = kept;
}

/* --- content --- */

static int is_recorded(int handle, struct stat *found, char *path) {
    int kept = errno;
    int is = log_handle >= 0 && !fstat(handle, found) && S_ISREG(found->st_mode) && path_of(handle, path);
    errno = kept;
    return is;
}

static ssize_t wrote(int handle, ssize_t done, off_t offset, const struct iovec *parts, int count, struct stat *found) {
    if (done > 0) {
        off_t start = offset >= 0 ? offset : lseek(handle, 0, SEEK_CUR) - done;
        note('W', NULL, NULL, found->st_ino, start, 0, parts, count, done);
    }
    release();
    return done;
}

ssize_t write(int handle, const void *data, size_t size) {
    struct stat found;
    char path[PATH_MAX];
    if (!is_recorded(handle, &found, path)) return REAL(write)(handle, data, size);
    struct iovec part = {(void *)data, size};
    hold();
    return wrote(handle, REAL(write)(handle, data, size), -1, &part, 1, &found);
}

ssize_t writev(int handle, const struct iovec *parts, int count) {
    struct stat found;
    char path[PATH_MAX];
    if (!is_recorded(handle, &found, path)) return REAL(writev)(handle, parts, count);
    if (count > IOV_MAX - 1) count = IOV_MAX - 1; /* the entry's head takes one; a part of it is a valid answer */
    hold();
    return wrote(handle, REAL(writev)(handle, parts, count), -1, parts, count, &found);
}

ssize_t pwrite(int handle, const void *data, size_t size, off_t offset) {
    struct stat found;
    char path[PATH_MAX];
    if (!is_recorded(handle, &found, path)) return REAL(pwrite)(handle, data, size, offset);
    struct iovec part = {(void *)data, size};
    hold();
    return wrote(handle, REAL(pwrite)(handle, data, size, offset), offset, &part, 1, &found);
}

ssize_t pwrite64(int handle, const void *data, size_t size, off64_t offset) { return pwrite(handle, data, size, offset); }

ssize_t pwritev(int handle, const struct iovec *parts, int count, off_t offset) {
    struct stat found;
    char path[PATH_MAX];
    if (!is_recorded(handle, &found, path)) return REAL(pwritev)(handle, parts, count, offset);
    if (count > IOV_MAX - 1) count = IOV_MAX - 1;
    hold();
    return wrote(handle, REAL(pwritev)(handle, parts, count, offset), offset, parts, count, &found);
}

ssize_t pwritev64(int handle, const struct iovec *parts, int count, off64_t offset) {
    return pwritev(handle, parts, count, offset);
}

int ftruncate(int handle, off_t size) {
    struct stat found;
    char path[PATH_MAX];
    if (!is_recorded(handle, &found, path)) return REAL(ftruncate)(handle, size);
    hold();
    int done = REAL(ftruncate)(handle, size);
    if (!done) note('T', NULL, NULL, found.st_ino, size, 0, NULL, 0, 0);
    release();
    return done;
}

int ftruncate64(int handle, off64_t size) { return ftruncate(handle, size); }

/* Space that is set aside behind the end makes a file longer, as a truncation to there does. */
int posix_fallocate(int handle, off_t offset, off_t size) {
    struct stat found;
    char path[PATH_MAX];
    if (!is_recorded(handle, &found, path)) return REAL(posix_fallocate)(handle, offset, size);
    hold();
    fstat(handle, &found);
    int failed = REAL(posix_fallocate)(handle, offset, size);
    if (!failed && offset + size > found.st_size) note('T', NULL, NULL, found.st_ino, offset + size, 0, NULL, 0, 0);
    release();
    return failed;
}

int posix_fallocate64(int handle, off64_t offset, off64_t size) { return posix_fallocate(handle, offset, size); }

static int synced(int handle, int (*sync)(int)) {
    struct stat found;
    char path[PATH_MAX];
    if (log_handle < 0 || fstat(handle, &found) || !path_of(handle, path)) return sync(handle);
    hold();
    int done = sync(handle);
    if (!done) note(S_ISDIR(found.st_mode) ? 'D' : 'S', path, NULL, found.st_ino, 0, 0, NULL, 0, 0);
    release();
    return done;
}

int fsync(int handle) { return synced(handle, REAL(fsync)); }
int fdatasync(int handle) { return synced(handle, REAL(fdatasync)); }

/* --- names --- */

static int opened(int folder, const char *name, int flags, mode_t mode, int (*open_it)(int, const char *, int, mode_t)) {
    char path[PATH_MAX];
    struct stat before, found;
    if (!(flags & (O_CREAT | O_TRUNC)) || !resolve(folder, name, path)) return open_it(folder, name, flags, mode);
    hold();
    int was_there = !lstat(path, &before);
    int handle = open_it(folder, name, flags, mode);
    if (handle >= 0 && !fstat(handle, &found) && S_ISREG(found.st_mode)) {
        if (!was_there) note('C', path, NULL, found.st_ino, 0, found.st_mode & 07777, NULL, 0, 0);
        else if (flags & O_TRUNC) note('T', NULL, NULL, found.st_ino, 0, 0, NULL, 0, 0);
    }
    release();
    return handle;
}

static int really_open(int folder, const char *name, int flags, mode_t mode) {
    return REAL(openat)(folder, name, flags, mode);
}

static mode_t mode_of(int flags, va_list more) { return flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; }

#define OPENER(name, folder_parameter, folder)                                                                              \
    int name(folder_parameter const char *path, int flags, ...) {                                                          \
        va_list more;                                                                                                      \
        va_start(more, flags);                                                                                             \
        mode_t mode = mode_of(flags, more);                                                                                \
        va_end(more);                                                                                                      \
        return opened(folder, path, flags, mode, really_open);                                                             \
    }
#define COMMA ,
OPENER(open, , AT_FDCWD)
OPENER(open64, , AT_FDCWD)
OPENER(openat, int folder COMMA, folder)
OPENER(openat64, int folder COMMA, folder)

int creat(const char *path, mode_t mode) {
    return opened(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode, really_open);
}

int creat64(const char *path, mode_t mode) { return creat(path, mode); }

static int noted(int done, char op, const char *path) {
    if (!done) note(op, path, NULL, 0, 0, 0, NULL, 0, 0);
    release();
    return done;
}

int mkdirat(int folder, const char *name, mode_t mode) {
    char path[PATH_MAX];
    if (!resolve(folder, name, path)) return REAL(mkdirat)(folder, name, mode);
    hold();
    return noted(REAL(mkdirat)(folder, name, mode), 'M', path);
}

int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int unlinkat(int folder, const char *name, int flags) {
    char path[PATH_MAX];
    if (!resolve(folder, name, path)) return REAL(unlinkat)(folder, name, flags);
    hold();
    return noted(REAL(unlinkat)(folder, name, flags), flags & AT_REMOVEDIR ? 'X' : 'U', path);
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int remove(const char *name) {
    struct stat found;
    return !lstat(name, &found) && S_ISDIR(found.st_mode) ? rmdir(name) : unlink(name);
}

static int moved(char op, int from, const char *old, int to, const char *new, int (*move)(int, const char *, int, const char *)) {
    char path[PATH_MAX], other[PATH_MAX];
    int starts = resolve(from, old, path), ends = resolve(to, new, other);
    if (!starts && !ends) return move(from, old, to, new);
    hold();
    int done = move(from, old, to, new);
    if (!done) note(op, starts ? path : "", ends ? other : "", 0, 0, 0, NULL, 0, 0);
    release();
    return done;
}

static int really_rename(int from, const char *old, int to, const char *new) { return REAL(renameat)(from, old, to, new); }
static int really_link(int from, const char *old, int to, const char *new) { return REAL(linkat)(from, old, to, new, 0); }

int renameat(int from, const char *old, int to, const char *new) { return moved('R', from, old, to, new, really_rename); }
int rename(const char *old, const char *new) { return renameat(AT_FDCWD, old, AT_FDCWD, new); }

int linkat(int from, const char *old, int to, const char *new, int flags) {
    if (flags) return REAL(linkat)(from, old, to, new, flags); /* of a link's target: nothing here asks for it */
    return moved('L', from, old, to, new, really_link);
}

int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }
