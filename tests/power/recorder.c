/* Records every change of files below POWER_ROOT in POWER_LOG, in one order over all threads and processes, and makes
 * single calls fail on request. Loaded with LD_PRELOAD by tests/power only.
 *
 * A record is a fixed header, two paths and the written data. A file is named by its inode, because it may be renamed
 * or deleted while it is open. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))real_function(#name, &cached_##name))
#define CACHE(name) static void *cached_##name

struct header {
    char kind;
    char padding[7];
    uint64_t inode;
    int64_t offset;
    uint32_t path_length, other_length;
    uint64_t data_length;
};

enum failing { NO_CALL, WRITES, SYNCS, NAMES, OPENS, ALLOCATIONS };

static char root[PATH_MAX];
static size_t root_length;
static int log_descriptor = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The kind of calls of which one fails, how many are left until then, whether later ones fail too, and its error. */
static int failing_kind, failing_in, failing_on, failing_error, failures;

static void *real_function(const char *name, void **cached) {
    if (!*cached) *cached = dlsym(RTLD_NEXT, name);
    return *cached;
}

CACHE(open); CACHE(openat); CACHE(write); CACHE(writev); CACHE(pwrite64); CACHE(pwritev); CACHE(ftruncate64);
CACHE(truncate64); CACHE(renameat2); CACHE(linkat);
CACHE(unlinkat); CACHE(mkdirat); CACHE(fsync); CACHE(fdatasync); CACHE(copy_file_range);
CACHE(sendfile64); CACHE(fallocate64); CACHE(posix_fallocate64); CACHE(fwrite); CACHE(mmap64); CACHE(sync_file_range);
CACHE(syncfs); CACHE(pwritev2);

static void catch_direct_calls(void);

__attribute__((constructor)) static void start(void) {
    const char *place = getenv("POWER_ROOT"), *log = getenv("POWER_LOG");
    if (!place || !log || !realpath(place, root)) return;
    root_length = strlen(root);
    log_descriptor = REAL(open)(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    catch_direct_calls();
}

/* Whether a path is recorded: SQLite rebuilds its shared memory. */
static int is_recorded(const char *path) {
    size_t length = strlen(path);
    if (log_descriptor < 0 || strncmp(path, root, root_length)) return 0;
    if (path[root_length] != '\0' && path[root_length] != '/') return 0;
    return length < 4 || strcmp(path + length - 4, "-shm");
}

static int find_open(int descriptor, char *path) {
    char name[64];
    if (log_descriptor < 0) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(name, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = '\0';
    char *deleted = strstr(path, " (deleted)");
    if (deleted && !deleted[10]) *deleted = '\0';
    return is_recorded(path);
}

static int find_path(int folder, const char *name, char *path) {
    char base[PATH_MAX];
    if (log_descriptor < 0 || !name) return 0;
    if (name[0] == '/') {
        snprintf(path, PATH_MAX, "%s", name);
    } else {
        if (folder == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return 0;
        } else {
            char link_name[64];
            snprintf(link_name, sizeof link_name, "/proc/self/fd/%d", folder);
            ssize_t length = readlink(link_name, base, sizeof base - 1);
            if (length < 0) return 0;
            base[length] = '\0';
        }
        if (strlen(base) + strlen(name) + 2 > PATH_MAX) return 0;
        strcpy(path, base);
        strcat(path, "/");
        strcat(path, name);
    }
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') path[--length] = '\0';
    return is_recorded(path);
}

static void record(char kind, uint64_t inode, int64_t offset, const char *path, const char *other, const void *data,
                   size_t size) {
    int before = errno;
    struct header header = {kind, {0}, inode, offset, path ? strlen(path) : 0, other ? strlen(other) : 0, size};
    struct iovec parts[] = {{&header, sizeof header},
                            {(void *)path, header.path_length},
                            {(void *)other, header.other_length},
                            {(void *)data, size}};
    if (REAL(writev)(log_descriptor, parts, 4) < 0) abort();
    errno = before;
}

static uint64_t inode_of(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) ? 0 : status.st_ino;
}

/* Whether this call is to fail; sets errno. */
static int fails(int kind) {
    if (failing_kind != kind || failing_in < 0) return 0;
    if (failing_in-- > 0) return 0;
    failures++;
    failing_in = failing_on ? 0 : -1;
    errno = failing_error;
    return 1;
}

/* Called by the tests: write a note into the log, and choose the call that fails. */
EXPORT void power_mark(const char *text) {
    if (log_descriptor < 0) return;
    pthread_mutex_lock(&lock);
    record('M', 0, 0, NULL, NULL, text, strlen(text));
    pthread_mutex_unlock(&lock);
}

EXPORT void power_fail(int kind, int after, int error, int from_there_on) {
    pthread_mutex_lock(&lock);
    failing_kind = kind, failing_in = after, failing_error = error, failing_on = from_there_on, failures = 0;
    pthread_mutex_unlock(&lock);
}

EXPORT int power_failures(void) { return failures; }

static int open_recorded(int folder, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    if (!find_path(folder, name, path)) return REAL(openat)(folder, name, flags, mode);
    pthread_mutex_lock(&lock);
    struct stat status;
    int descriptor = -1, existed = !fstatat(folder, name, &status, 0);
    if (!fails(OPENS)) descriptor = REAL(openat)(folder, name, flags, mode);
    if (descriptor >= 0 && !existed && (flags & O_CREAT)) record('C', inode_of(descriptor), 0, path, NULL, NULL, 0);
    else if (descriptor >= 0 && (flags & O_TRUNC)) record('T', inode_of(descriptor), 0, path, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return descriptor;
}

#define OPEN_MODE()                                    \
    mode_t mode = 0;                                   \
    if (flags & (O_CREAT | __O_TMPFILE)) {             \
        va_list rest;                                  \
        va_start(rest, flags);                         \
        mode = va_arg(rest, mode_t);                   \
        va_end(rest);                                  \
    }

EXPORT int open(const char *name, int flags, ...) { OPEN_MODE() return open_recorded(AT_FDCWD, name, flags, mode); }
EXPORT int open64(const char *name, int flags, ...) {
    OPEN_MODE() return open_recorded(AT_FDCWD, name, flags | O_LARGEFILE, mode);
}
EXPORT int openat(int folder, const char *name, int flags, ...) {
    OPEN_MODE() return open_recorded(folder, name, flags, mode);
}
EXPORT int openat64(int folder, const char *name, int flags, ...) {
    OPEN_MODE() return open_recorded(folder, name, flags | O_LARGEFILE, mode);
}
EXPORT int creat(const char *name, mode_t mode) {
    return open_recorded(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

static int64_t position(int descriptor) {
    struct stat status;
    int flags = fcntl(descriptor, F_GETFL);
    if (flags >= 0 && (flags & O_APPEND) && !fstat(descriptor, &status)) return status.st_size;
    return lseek(descriptor, 0, SEEK_CUR);
}

/* Record what a call wrote that does not say which bytes. */
static void record_range(int descriptor, const char *path, int64_t offset, ssize_t size) {
    char name[64], *data = size > 0 ? malloc(size) : NULL;
    if (!data) return;
    snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
    int reader = REAL(open)(name, O_RDONLY | O_CLOEXEC);
    if (reader < 0 || pread(reader, data, size, offset) != size) abort();
    close(reader);
    record('W', inode_of(descriptor), offset, path, NULL, data, size);
    free(data);
}

#define WRITING(TYPE, descriptor, at, call, data)                                          \
    char path[PATH_MAX];                                                                   \
    if (!find_open(descriptor, path)) return call;                                         \
    pthread_mutex_lock(&lock);                                                             \
    int64_t offset = at;                                                                   \
    TYPE done = -1;                                                                        \
    if (!fails(WRITES)) done = call;                                                       \
    if (done > 0) {                                                                        \
        const void *content = data;                                                        \
        if (content) record('W', inode_of(descriptor), offset, path, NULL, content, done); \
        else record_range(descriptor, path, offset, done);                                 \
    }                                                                                      \
    pthread_mutex_unlock(&lock);                                                           \
    return done;

EXPORT ssize_t write(int descriptor, const void *data, size_t size) {
    WRITING(ssize_t, descriptor, position(descriptor), REAL(write)(descriptor, data, size), data)
}
EXPORT ssize_t pwrite64(int descriptor, const void *data, size_t size, off64_t at) {
    WRITING(ssize_t, descriptor, at, REAL(pwrite64)(descriptor, data, size, at), data)
}
EXPORT ssize_t pwrite(int descriptor, const void *data, size_t size, off_t at) {
    return pwrite64(descriptor, data, size, at);
}
EXPORT ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    WRITING(ssize_t, descriptor, position(descriptor), REAL(writev)(descriptor, parts, count), NULL)
}
EXPORT ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t at) {
    WRITING(ssize_t, descriptor, at, REAL(pwritev)(descriptor, parts, count, at), NULL)
}
EXPORT ssize_t pwritev64(int descriptor, const struct iovec *parts, int count, off64_t at) {
    return pwritev(descriptor, parts, count, at);
}
EXPORT ssize_t pwritev2(int descriptor, const struct iovec *parts, int count, off_t at, int flags) {
    WRITING(ssize_t, descriptor, at < 0 ? position(descriptor) : at,
            REAL(pwritev2)(descriptor, parts, count, at, flags), NULL)
}
EXPORT ssize_t copy_file_range(int source, off64_t *from, int descriptor, off64_t *to, size_t size, unsigned flags) {
    WRITING(ssize_t, descriptor, to ? *to : position(descriptor),
            REAL(copy_file_range)(source, from, descriptor, to, size, flags), NULL)
}
EXPORT ssize_t sendfile64(int descriptor, int source, off64_t *from, size_t size) {
    WRITING(ssize_t, descriptor, position(descriptor), REAL(sendfile64)(descriptor, source, from, size), NULL)
}
EXPORT ssize_t sendfile(int descriptor, int source, off_t *from, size_t size) {
    return sendfile64(descriptor, source, from, size);
}
/* The C library writes a stream without calling `write` by name. */
EXPORT size_t fwrite(const void *data, size_t size, size_t count, FILE *stream) {
    char path[PATH_MAX];
    int descriptor = fileno(stream);
    if (descriptor < 0 || !find_open(descriptor, path)) return REAL(fwrite)(data, size, count, stream);
    pthread_mutex_lock(&lock);
    fflush(stream);
    int64_t offset = position(descriptor);
    size_t done = fails(WRITES) ? 0 : REAL(fwrite)(data, size, count, stream);
    if (done && !fflush(stream)) record('W', inode_of(descriptor), offset, path, NULL, data, done * size);
    pthread_mutex_unlock(&lock);
    return done;
}

#define RECORDING(TYPE, found, kind, call, note) \
    char path[PATH_MAX];                         \
    if (!(found)) return call;                   \
    pthread_mutex_lock(&lock);                   \
    TYPE done = -1;                              \
    if (!fails(kind)) done = call;               \
    if (!done) { note; }                         \
    pthread_mutex_unlock(&lock);                 \
    return done;

EXPORT int ftruncate64(int descriptor, off64_t length) {
    RECORDING(int, find_open(descriptor, path), WRITES, REAL(ftruncate64)(descriptor, length),
              record('T', inode_of(descriptor), length, path, NULL, NULL, 0))
}
EXPORT int ftruncate(int descriptor, off_t length) { return ftruncate64(descriptor, length); }
static uint64_t inode_at(const char *path) {
    struct stat status;
    return stat(path, &status) ? 0 : status.st_ino;
}
EXPORT int truncate64(const char *name, off64_t length) {
    RECORDING(int, find_path(AT_FDCWD, name, path), WRITES, REAL(truncate64)(name, length),
              record('T', inode_at(path), length, path, NULL, NULL, 0))
}
EXPORT int truncate(const char *name, off_t length) { return truncate64(name, length); }
static void record_growth(int descriptor, const char *path, int64_t end) {
    struct stat status;
    /* The file has its new size already, and a shorter one would not be grown by this record. */
    if (!fstat(descriptor, &status) && status.st_size == end)
        record('G', status.st_ino, end, path, NULL, NULL, 0);
}
EXPORT int fallocate64(int descriptor, int mode, off64_t at, off64_t length) {
    RECORDING(int, find_open(descriptor, path), ALLOCATIONS, REAL(fallocate64)(descriptor, mode, at, length),
              if (!(mode & FALLOC_FL_KEEP_SIZE)) record_growth(descriptor, path, at + length))
}
EXPORT int fallocate(int descriptor, int mode, off_t at, off_t length) {
    return fallocate64(descriptor, mode, at, length);
}
EXPORT int posix_fallocate64(int descriptor, off64_t at, off64_t length) {
    RECORDING(int, find_open(descriptor, path), ALLOCATIONS, REAL(posix_fallocate64)(descriptor, at, length),
              record_growth(descriptor, path, at + length))
}
EXPORT int posix_fallocate(int descriptor, off_t at, off_t length) { return posix_fallocate64(descriptor, at, length); }

EXPORT int renameat2(int folder, const char *name, int to, const char *new_name, unsigned flags) {
    char other[PATH_MAX];
    int is_known = find_path(to, new_name, other);
    RECORDING(int, find_path(folder, name, path) || is_known, NAMES,
              REAL(renameat2)(folder, name, to, new_name, flags), record('R', inode_at(other), 0, path, other, NULL, 0))
}
EXPORT int renameat(int folder, const char *name, int to, const char *new_name) {
    return renameat2(folder, name, to, new_name, 0);
}
EXPORT int rename(const char *name, const char *new_name) {
    return renameat2(AT_FDCWD, name, AT_FDCWD, new_name, 0);
}
EXPORT int linkat(int folder, const char *name, int to, const char *new_name, int flags) {
    char other[PATH_MAX];
    int is_known = find_path(to, new_name, other);
    RECORDING(int, find_path(folder, name, path) && is_known, NAMES, REAL(linkat)(folder, name, to, new_name, flags),
              record('L', inode_at(other), 0, path, other, NULL, 0))
}
EXPORT int link(const char *name, const char *new_name) { return linkat(AT_FDCWD, name, AT_FDCWD, new_name, 0); }
EXPORT int unlinkat(int folder, const char *name, int flags) {
    RECORDING(int, find_path(folder, name, path), NAMES, REAL(unlinkat)(folder, name, flags),
              record('U', 0, 0, path, NULL, NULL, 0))
}
EXPORT int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
EXPORT int remove(const char *name) {
    struct stat status;
    if (lstat(name, &status)) return -1;
    return unlinkat(AT_FDCWD, name, S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0);
}
EXPORT int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }
EXPORT int mkdirat(int folder, const char *name, mode_t mode) {
    RECORDING(int, find_path(folder, name, path), NAMES, REAL(mkdirat)(folder, name, mode),
              record('D', 0, 0, path, NULL, NULL, 0))
}
EXPORT int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

EXPORT int fsync(int descriptor) {
    RECORDING(int, find_open(descriptor, path), SYNCS, REAL(fsync)(descriptor),
              record('S', inode_of(descriptor), 0, path, NULL, NULL, 0))
}
EXPORT int fdatasync(int descriptor) {
    RECORDING(int, find_open(descriptor, path), SYNCS, REAL(fdatasync)(descriptor),
              record('S', inode_of(descriptor), 0, path, NULL, NULL, 0))
}
EXPORT int syncfs(int descriptor) {
    RECORDING(int, find_open(descriptor, path), SYNCS, REAL(syncfs)(descriptor), record('A', 0, 0, path, NULL, NULL, 0))
}
/* Neither promises that the file can be read after a crash. */
EXPORT int sync_file_range(int descriptor, off64_t at, off64_t length, unsigned flags) {
    return REAL(sync_file_range)(descriptor, at, length, flags);
}
EXPORT void *mmap64(void *at, size_t length, int protection, int flags, int descriptor, off64_t offset) {
    char path[PATH_MAX];
    if (descriptor >= 0 && failing_kind == ALLOCATIONS && log_descriptor >= 0) {
        char name[64];
        snprintf(name, sizeof name, "/proc/self/fd/%d", descriptor);
        ssize_t size = readlink(name, path, sizeof path - 1);
        if (size > 0 && !strncmp(path, root, root_length)) {
            pthread_mutex_lock(&lock);
            int is_failing = fails(ALLOCATIONS);
            pthread_mutex_unlock(&lock);
            if (is_failing) return MAP_FAILED;
        }
    }
    return REAL(mmap64)(at, length, protection, flags, descriptor, offset);
}
EXPORT void *mmap(void *at, size_t length, int protection, int flags, int descriptor, off_t offset) {
    return mmap64(at, length, protection, flags, descriptor, offset);
}

/* Rust's `rustix` calls the kernel without the C library. A filter of the kernel sends such calls here as a signal. It
 * is inherited by programs that this process starts, where the C library is elsewhere: the recorded programs start
 * none. */
#if defined(__x86_64__)
static const int direct[] = {SYS_rename,   SYS_renameat, SYS_renameat2, SYS_link,     SYS_linkat,    SYS_unlink,
                             SYS_unlinkat, SYS_mkdir,    SYS_mkdirat,   SYS_rmdir,    SYS_ftruncate, SYS_truncate,
                             SYS_fsync,    SYS_fdatasync, SYS_copy_file_range, SYS_fallocate};
#define DIRECT (sizeof direct / sizeof *direct)

static void repeat_call(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    int before = errno;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int64_t a = registers[REG_RDI], b = registers[REG_RSI], c = registers[REG_RDX], d = registers[REG_R10],
            e = registers[REG_R8], f = registers[REG_R9], done = -ENOSYS;
    switch (registers[REG_RAX]) {
    case SYS_rename: done = rename((char *)a, (char *)b); break;
    case SYS_renameat: done = renameat(a, (char *)b, c, (char *)d); break;
    case SYS_renameat2: done = renameat2(a, (char *)b, c, (char *)d, e); break;
    case SYS_link: done = link((char *)a, (char *)b); break;
    case SYS_linkat: done = linkat(a, (char *)b, c, (char *)d, e); break;
    case SYS_unlink: done = unlink((char *)a); break;
    case SYS_unlinkat: done = unlinkat(a, (char *)b, c); break;
    case SYS_mkdir: done = mkdir((char *)a, b); break;
    case SYS_mkdirat: done = mkdirat(a, (char *)b, c); break;
    case SYS_rmdir: done = rmdir((char *)a); break;
    case SYS_ftruncate: done = ftruncate(a, b); break;
    case SYS_truncate: done = truncate((char *)a, b); break;
    case SYS_fsync: done = fsync(a); break;
    case SYS_fdatasync: done = fdatasync(a); break;
    case SYS_copy_file_range: done = copy_file_range(a, (off64_t *)b, c, (off64_t *)d, e, f); break;
    case SYS_fallocate: done = fallocate(a, b, c, d); break;
    }
    registers[REG_RAX] = done == -1 ? -errno : done;
    errno = before;
}

static int find_library(struct dl_phdr_info *library, size_t size, void *range) {
    (void)size;
    if (!strstr(library->dlpi_name, "/libc.so")) return 0;
    for (int number = 0; number < library->dlpi_phnum; number++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[number];
        if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
            ((uint64_t *)range)[0] = library->dlpi_addr + part->p_vaddr;
            ((uint64_t *)range)[1] = library->dlpi_addr + part->p_vaddr + part->p_memsz;
        }
    }
    return 1;
}

static void catch_direct_calls(void) {
    uint64_t range[2] = {0, 0};
    dl_iterate_phdr(find_library, range);
    struct sigaction action = {.sa_sigaction = repeat_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (!range[0] || range[0] >> 32 != range[1] >> 32 || sigaction(SIGSYS, &action, NULL)) return;
    struct sock_filter filter[DIRECT + 9];
    size_t at = 0;
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t number = 0; number < DIRECT; number++)
        filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, direct[number], DIRECT - number, 0);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    size_t pointer = offsetof(struct seccomp_data, instruction_pointer);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, pointer + 4);
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, range[0] >> 32, 0, 3);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, pointer);
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)range[0], 0, 1);
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)range[1], 0, 1);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {at, filter};
    if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
#else
static void catch_direct_calls(void) {}
#endif
