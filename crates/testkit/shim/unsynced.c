/* A disk that forgets and a disk that fails, for one process: preloaded into a server under test.
 *
 * CHIO_SHIM_DATA    the folder that this is about, as an absolute path without links
 * CHIO_SHIM_SHADOW  a folder that mirrors what of the data folder would survive a power cut: each
 *                   file as of its last sync, each name as of the last sync of its file or folder
 * CHIO_SHIM_FORGET  syncs of files whose names begin with this only pretend: a disk that lies
 * CHIO_SHIM_CUT     the process is killed before this sync, counted from 1
 * CHIO_SHIM_FAULT   while this file exists, the databases fail: `full` in it makes writes fail with
 *                   ENOSPC, half-way where they are long; anything else makes syncs fail with EIO
 *
 * The process keeps what it has written, as the page cache would; whoever kills it replaces the
 * data folder by the shadow.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define ROOM (PATH_MAX + 64)

static const char *data, *shadow, *forget, *fault;
static long left = -1; /* syncs until the power is cut; negative: never */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_rename)(const char *, const char *);

/* Renames that no sync of their folder has made durable yet. */
struct move {
    char from[PATH_MAX], to[PATH_MAX];
    struct move *next;
};
static struct move *moves;

static void begin(void) {
    *(void **)&real_write = dlsym(RTLD_NEXT, "write");
    *(void **)&real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    *(void **)&real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    *(void **)&real_rename = dlsym(RTLD_NEXT, "rename");
    data = getenv("CHIO_SHIM_DATA");
    shadow = getenv("CHIO_SHIM_SHADOW");
    forget = getenv("CHIO_SHIM_FORGET");
    fault = getenv("CHIO_SHIM_FAULT");
    const char *cut = getenv("CHIO_SHIM_CUT");
    if (cut) left = atol(cut);
}

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The rest of a path below the data folder, with its slash; none when it is elsewhere. */
static const char *below(const char *path) {
    size_t length = data ? strlen(data) : 0;
    if (length == 0 || strncmp(path, data, length) != 0) return NULL;
    return path[length] == '/' || path[length] == 0 ? path + length : NULL;
}

/* The path of an open file below the data folder. */
static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return below(path) && !strstr(path, " (deleted)");
}

/* ---- what was written since the last sync ---- */

#define RANGES 1024

/* A file that this process has written. */
struct file {
    dev_t device;
    ino_t number;
    int whole; /* the shadow is not a copy of this file yet, or of more than the ranges */
    int count;
    struct { off_t at; off_t length; } ranges[RANGES];
    struct file *next;
};
static struct file *files;

/* The account of a file; whoever asks has the turn. */
static struct file *account(const struct stat *found) {
    for (struct file *file = files; file; file = file->next)
        if (file->device == found->st_dev && file->number == found->st_ino) return file;
    struct file *file = calloc(1, sizeof *file);
    if (!file) abort();
    file->device = found->st_dev;
    file->number = found->st_ino;
    file->whole = 1;
    file->next = files;
    files = file;
    return file;
}

/* Notes that a range of a file was written; a negative length means all of it. */
static void note(int fd, off_t at, off_t length) {
    int kept = errno;
    struct stat found;
    char path[PATH_MAX];
    if (shadow && length != 0 && path_of(fd, path) && fstat(fd, &found) == 0) {
        pthread_mutex_lock(&turn);
        struct file *file = account(&found);
        if (length < 0 || file->count == RANGES) {
            file->whole = 1;
        } else if (!file->whole) {
            file->ranges[file->count].at = at;
            file->ranges[file->count++].length = length;
        }
        pthread_mutex_unlock(&turn);
    }
    errno = kept;
}

/* ---- faults ---- */

enum { NOTHING, FULL, BROKEN };

static int fault_now(int fd) {
    int kept = errno, found = NOTHING;
    char path[PATH_MAX], said[8] = "";
    int control = fault && data ? open(fault, O_RDONLY | O_CLOEXEC) : -1;
    if (control >= 0) {
        ssize_t length = read(control, said, sizeof said - 1);
        close(control);
        if (length >= 0 && path_of(fd, path)) {
            const char *name = file_name(path);
            if (!strncmp(name, "store.db", 8) || !strncmp(name, "index.db", 8))
                found = strncmp(said, "full", 4) ? BROKEN : FULL;
        }
    }
    errno = kept;
    return found;
}

ssize_t write(int fd, const void *bytes, size_t count) {
    pthread_once(&once, begin);
    if (fault_now(fd) == FULL) {
        if (count <= 512) {
            errno = ENOSPC;
            return -1;
        }
        count /= 2;
    }
    ssize_t done = real_write(fd, bytes, count);
    /* Also in a file that is appended to, the place is behind what was written. */
    if (done > 0 && shadow) note(fd, lseek(fd, 0, SEEK_CUR) - done, done);
    return done;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at) {
    pthread_once(&once, begin);
    if (fault_now(fd) == FULL) {
        if (count <= 512) {
            errno = ENOSPC;
            return -1;
        }
        count /= 2;
    }
    ssize_t done = real_pwrite(fd, bytes, count, at);
    if (done > 0) note(fd, at, done);
    return done;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    return pwrite64(fd, bytes, count, at);
}

int ftruncate64(int fd, off_t length) {
    struct stat found;
    pthread_once(&once, begin);
    /* To make a file shorter needs no room. */
    if (fault_now(fd) == FULL && fstat(fd, &found) == 0 && length > found.st_size) {
        errno = ENOSPC;
        return -1;
    }
    int done = real_ftruncate(fd, length);
    note(fd, 0, -1);
    return done;
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

/* ---- what survives ---- */

static void shadow_of(const char *path, char *out) {
    snprintf(out, ROOM, "%s%s", shadow, below(path));
}

/* Makes every folder above a path of the shadow. */
static void make_above(const char *path) {
    char part[ROOM];
    snprintf(part, sizeof part, "%s", path);
    for (char *at = part + strlen(shadow) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(part, 0700);
        *at = '/';
    }
}

static void copy(int from, int to, off_t at, off_t length) {
    static char block[1 << 20];
    while (length > 0) {
        size_t most = length < (off_t)sizeof block ? (size_t)length : sizeof block;
        ssize_t got = pread(from, block, most, at);
        if (got <= 0) return; /* it was made shorter since */
        if (real_pwrite(to, block, (size_t)got, at) != got) abort();
        at += got;
        length -= got;
    }
}

/* Brings the shadow of a file up to date. The first time it is made anew: at each moment there is
 * the old content or the new. After that only what was written since is copied; a process that is
 * killed meanwhile was not told that its sync is done. */
static void keep_file(int fd, const char *path) {
    char kept[ROOM], draft[ROOM], source[64];
    struct stat found;
    if (fstat(fd, &found) != 0) abort();
    struct file *file = account(&found);
    shadow_of(path, kept);
    make_above(kept);
    if (access(kept, F_OK) != 0) file->whole = 1;
    snprintf(draft, sizeof draft, "%s.draft", shadow);
    snprintf(source, sizeof source, "/proc/self/fd/%d", fd);
    int from = open(source, O_RDONLY | O_CLOEXEC);
    int to = file->whole ? open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
                         : open(kept, O_WRONLY | O_CLOEXEC);
    if (from < 0 || to < 0) abort();
    if (file->whole) copy(from, to, 0, found.st_size);
    for (int at = 0; at < file->count && !file->whole; at++)
        copy(from, to, file->ranges[at].at, file->ranges[at].length);
    close(from);
    close(to);
    if (file->whole && real_rename(draft, kept) != 0) abort();
    file->whole = file->count = 0;
}

static int is_in(const char *path, const char *folder) {
    size_t length = strlen(folder);
    return !strncmp(path, folder, length) && path[length] == '/' && !strchr(path + length + 1, '/');
}

/* Removes a file or a folder with all that is in it, of the shadow only. */
static void forget_tree(const char *path) {
    DIR *listed = opendir(path);
    if (listed) {
        for (struct dirent *entry; (entry = readdir(listed));) {
            char inner[2 * ROOM];
            if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
            snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
            if (strlen(inner) < ROOM) forget_tree(inner);
        }
        closedir(listed);
        rmdir(path);
    } else {
        unlink(path);
    }
}

/* Makes the names in a folder durable: renamed, new and removed ones. A file that was never synced
 * has a name then, and nothing in it. */
static void keep_names(const char *folder) {
    char from[ROOM], to[ROOM], real[2 * ROOM], kept[2 * ROOM];
    for (struct move **at = &moves; *at;) {
        struct move *move = *at;
        if (!is_in(move->to, folder)) {
            at = &move->next;
            continue;
        }
        shadow_of(move->from, from);
        shadow_of(move->to, to);
        make_above(to);
        if (access(from, F_OK) == 0) {
            forget_tree(to);
            real_rename(from, to);
        }
        *at = move->next;
        free(move);
    }
    shadow_of(folder, to);
    make_above(to);
    mkdir(to, 0700);
    DIR *listed = opendir(folder);
    for (struct dirent *entry; listed && (entry = readdir(listed));) {
        struct stat found;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(real, sizeof real, "%s/%s", folder, entry->d_name);
        snprintf(kept, sizeof kept, "%s/%s", to, entry->d_name);
        if (access(kept, F_OK) == 0 || lstat(real, &found) != 0) continue;
        if (S_ISDIR(found.st_mode)) mkdir(kept, 0700);
        if (S_ISREG(found.st_mode)) {
            int made = open(kept, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
            if (made >= 0) close(made);
        }
    }
    if (listed) closedir(listed);
    listed = opendir(to);
    for (struct dirent *entry; listed && (entry = readdir(listed));) {
        snprintf(real, sizeof real, "%s/%s", folder, entry->d_name);
        snprintf(kept, sizeof kept, "%s/%s", to, entry->d_name);
        if (access(real, F_OK) != 0 && strlen(kept) < ROOM) forget_tree(kept);
    }
    if (listed) closedir(listed);
}

static int sync_it(int fd) {
    char path[PATH_MAX];
    struct stat found;
    pthread_once(&once, begin);
    if (fault_now(fd) == BROKEN) {
        errno = EIO;
        return -1;
    }
    if (!shadow || !path_of(fd, path) || fstat(fd, &found) != 0) return 0;
    if (forget && !strncmp(file_name(path), forget, strlen(forget))) return 0;
    int kept = errno;
    pthread_mutex_lock(&turn);
    if (left > 0 && --left == 0) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    if (S_ISDIR(found.st_mode)) keep_names(path);
    if (S_ISREG(found.st_mode)) keep_file(fd, path);
    pthread_mutex_unlock(&turn);
    errno = kept;
    return 0;
}

int fsync(int fd) { return sync_it(fd); }
int fdatasync(int fd) { return sync_it(fd); }

int rename(const char *from, const char *to) {
    pthread_once(&once, begin);
    pthread_mutex_lock(&turn);
    int renamed = real_rename(from, to);
    int kept = errno;
    struct move *move = renamed == 0 && shadow && below(from) && below(to) ? malloc(sizeof *move) : NULL;
    if (move) {
        snprintf(move->from, sizeof move->from, "%s", from);
        snprintf(move->to, sizeof move->to, "%s", to);
        move->next = NULL;
        struct move **last = &moves;
        while (*last) last = &(*last)->next;
        *last = move;
    }
    pthread_mutex_unlock(&turn);
    errno = kept;
    return renamed;
}
