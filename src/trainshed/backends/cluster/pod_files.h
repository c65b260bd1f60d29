/* The files of a pod, a service of its init: the server lists them, brings some and fetches what programs changed.
 *
 * pod_init.c includes it. A child of the init serves one connection. Both sides send frames, as on the connection for
 * output: a letter, the length in four bytes, and so many bytes. Numbers are big-endian. The server says
 *
 *     L  HASH 8, WAIT 1, ROOT [SPACE ROOT]...   list; where all is as HASH says and WAIT is 1, wait for a change or for
 *                                               the next word of the server
 *     G  OFFSET 8, PATH                         a file from there on
 *     P  MODE 4, MTIME 8, SIZE 8, PATH          a file: SIZE bytes follow the frame; it replaces another at once
 *     M  MODE 4, PATH                           a folder, with those above it
 *     K  TARGET, 0, PATH                        a symbolic link
 *     X  PATH                                   remove what is there, with all below it
 *     S                                         tell when all of that is done
 *
 * and gets
 *
 *     l  ENTRY...       files, folders and links        =  HASH 8   the end of a list; alone, it is as it was
 *     h  ENTRY          the file that follows; again, as it is after it was read
 *     d  BYTES          of the file                     .           all before S is done
 *     !  ERRNO 4, PATH  why something could not be done
 *
 *     ENTRY is KIND 1 (f, d, l), MODE 4, INODE 8, SIZE 8, MTIME 8, CTIME 8, LENGTH 2, LENGTH 2, PATH, TARGET
 *
 * A path begins with one of `roots` and never leaves it: each folder on the way is opened by its name alone, and no link
 * is followed. Programs may change everything meanwhile. What is brought is written elsewhere and renamed.
 */
#include <dirent.h>
#include <sys/stat.h>

#ifndef FILES /* tests have another */
#define FILES "/.trainshed/files/"
#endif
#define DRAFTS ".new"
#define PIECE 262144
#define MOST_FRAME 16384   /* bytes of a frame of the server: a path and a few numbers */
#define LONGEST_PATH 4096
#define DEEPEST 200        /* folders in each other */
#define LEAST_WAIT 500     /* milliseconds between two looks at files that nobody changed */
#define MOST_WAIT 30000
#define PATIENCE_FACTOR 30 /* and at least so many times as long as a look takes */

static const char *const roots[] = {"code", "gcs", "layer", "report", NULL};

static struct {
    int connection, top;
    unsigned char in[65536], out[PIECE + 65536];
    size_t in_at, in_end, out_end;
    uint64_t hash;
    int is_telling; /* whether a walk sends what it finds */
    unsigned char list[65536];
    size_t list_end;
} exchange;

static void store(unsigned char *into, uint64_t number, int bytes) {
    for (int i = bytes - 1; i >= 0; i--, number >>= 8) into[i] = (unsigned char)number;
}

static uint64_t load(const unsigned char *from, int bytes) {
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++) number = number << 8 | from[i];
    return number;
}

/* The connection. Where it breaks the child ends. */

static void flush(void) {
    for (size_t done = 0; done < exchange.out_end;) {
        ssize_t size = send(exchange.connection, exchange.out + done, exchange.out_end - done, MSG_NOSIGNAL);
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) _exit(0);
        done += (size_t)size;
    }
    exchange.out_end = 0;
}

static void say(char kind, const void *data, size_t size) {
    if (exchange.out_end + size + 5 > sizeof exchange.out) flush();
    exchange.out[exchange.out_end] = (unsigned char)kind;
    store(exchange.out + exchange.out_end + 1, size, 4);
    memcpy(exchange.out + exchange.out_end + 5, data, size);
    exchange.out_end += size + 5;
}

static void say_error(const char *path) {
    unsigned char words_of_error[4 + LONGEST_PATH];
    size_t length = strnlen(path, LONGEST_PATH);
    store(words_of_error, (uint64_t)errno, 4);
    memcpy(words_of_error + 4, path, length);
    say('!', words_of_error, length + 4);
}

/* Some of the next bytes, at least one. Answers that wait are sent before it waits itself. */
static size_t some(unsigned char **place, size_t most) {
    if (exchange.in_at == exchange.in_end) {
        ssize_t size = recv(exchange.connection, exchange.in, sizeof exchange.in, MSG_DONTWAIT);
        while (size < 0 && (errno == EAGAIN || errno == EINTR)) {
            flush();
            size = recv(exchange.connection, exchange.in, sizeof exchange.in, 0);
        }
        if (size <= 0) _exit(0);
        exchange.in_at = 0, exchange.in_end = (size_t)size;
    }
    size_t size = exchange.in_end - exchange.in_at;
    if (size > most) size = most;
    *place = exchange.in + exchange.in_at;
    exchange.in_at += size;
    return size;
}

static void take(unsigned char *into, size_t size) {
    while (size) {
        unsigned char *piece;
        size_t got = some(&piece, size);
        memcpy(into, piece, got);
        into += got, size -= got;
    }
}

/* Paths */

/* The folder in which the path's last name is, and that name; -1 where a link or nothing is on the way. */
static int folder_of(const char *path, const char **name) {
    char part[256];
    int place = -1;
    for (int depth = 0;; depth++) {
        size_t length = strcspn(path, "/");
        if (length == 0 || length >= sizeof part || (path[0] == '.' && (length == 1 || (length == 2 && path[1] == '.')))) {
            errno = EINVAL;
            break;
        }
        memcpy(part, path, length), part[length] = 0;
        if (depth == 0) {
            size_t i = 0;
            while (roots[i] && strcmp(roots[i], part)) i++;
            if (!roots[i] || !path[length]) {
                errno = EINVAL;
                break;
            }
        } else if (!path[length]) {
            *name = path;
            return place;
        }
        int next = openat(depth ? place : exchange.top, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) break;
        if (place >= 0) close(place);
        place = next;
        path += length + 1;
    }
    if (place >= 0) close(place);
    return -1;
}

/* Looking */

static uint64_t hash_of(const unsigned char *bytes, size_t size) {
    uint64_t hash = 14695981039346656037ULL;
    while (size--) hash = (hash ^ *bytes++) * 1099511628211ULL;
    return hash ^ hash >> 29;
}

static size_t entry_of(unsigned char *into, const struct stat *status, const char *path, const char *target) {
    size_t length = strlen(path), further = strlen(target);
    int is_folder = S_ISDIR(status->st_mode);
    into[0] = (unsigned char)(is_folder ? 'd' : S_ISLNK(status->st_mode) ? 'l' : 'f');
    store(into + 1, status->st_mode & 07777, 4);
    store(into + 5, status->st_ino, 8);
    /* What changes in a folder is told by what is in it. */
    store(into + 13, is_folder ? 0 : (uint64_t)status->st_size, 8);
    store(into + 21, is_folder ? 0 : (uint64_t)(status->st_mtim.tv_sec * 1000000000LL + status->st_mtim.tv_nsec), 8);
    store(into + 29, is_folder ? 0 : (uint64_t)(status->st_ctim.tv_sec * 1000000000LL + status->st_ctim.tv_nsec), 8);
    store(into + 37, length, 2);
    store(into + 39, further, 2);
    memcpy(into + 41, path, length);
    memcpy(into + 41 + length, target, further);
    return 41 + length + further;
}

static void tell_list(void) {
    if (exchange.list_end) say('l', exchange.list, exchange.list_end);
    exchange.list_end = 0;
}

static void walk(int folder, char *path, size_t length, int depth) {
    static unsigned char entry[41 + 2 * LONGEST_PATH];
    DIR *listing = fdopendir(folder);
    struct dirent *item;
    if (!listing) close(folder);
    while (listing && (item = readdir(listing))) {
        struct stat status;
        char target[LONGEST_PATH] = "";
        size_t size = strlen(item->d_name);
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
        if (length + size + 2 > LONGEST_PATH || fstatat(dirfd(listing), item->d_name, &status, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode)) continue;
        path[length] = '/';
        memcpy(path + length + 1, item->d_name, size + 1);
        if (S_ISLNK(status.st_mode)) {
            ssize_t got = readlinkat(dirfd(listing), item->d_name, target, sizeof target - 1);
            target[got < 0 ? 0 : got] = 0;
        }
        size_t whole = entry_of(entry, &status, path, target);
        exchange.hash += hash_of(entry, whole); /* in whatever order */
        if (exchange.is_telling) {
            if (exchange.list_end + whole > sizeof exchange.list) tell_list();
            memcpy(exchange.list + exchange.list_end, entry, whole);
            exchange.list_end += whole;
        }
        if (S_ISDIR(status.st_mode) && depth < DEEPEST) {
            int next = openat(dirfd(listing), item->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (next >= 0) walk(next, path, length + size + 1, depth + 1);
        }
    }
    if (listing) closedir(listing);
    path[length] = 0;
}

/* What is below these roots, as a number that differs after every change. */
static uint64_t look(const char *names_of_roots) {
    char list[256], *rest, path[LONGEST_PATH + 1];
    exchange.hash = 1;
    snprintf(list, sizeof list, "%s", names_of_roots);
    for (char *name = strtok_r(list, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
        for (size_t i = 0; roots[i]; i++) {
            if (strcmp(roots[i], name) != 0) continue;
            int place = openat(exchange.top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            snprintf(path, sizeof path, "%s", name);
            if (place >= 0) walk(place, path, strlen(name), 0);
        }
    return exchange.hash;
}

static void answer_list(const unsigned char *words_of_list, const char *names_of_roots) {
    uint64_t known = load(words_of_list, 8);
    int waits = words_of_list[8];
    unsigned char hash[8];
    for (;;) {
        long long began = steady_now();
        uint64_t seen = look(names_of_roots);
        if (seen != known) break;
        long long pause = (steady_now() - began) / 1000000 * PATIENCE_FACTOR;
        struct pollfd wait = {.fd = exchange.connection, .events = POLLIN};
        flush();
        pause = pause < LEAST_WAIT ? LEAST_WAIT : pause > MOST_WAIT ? MOST_WAIT : pause;
        if (!waits || exchange.in_at < exchange.in_end || poll(&wait, 1, (int)pause) > 0) {
            store(hash, known, 8);
            say('=', hash, sizeof hash);
            return;
        }
    }
    exchange.is_telling = 1;
    store(hash, look(names_of_roots), 8);
    exchange.is_telling = 0;
    tell_list();
    say('=', hash, sizeof hash);
}

static void answer_get(const char *path, uint64_t offset) {
    static unsigned char piece[PIECE], entry[41 + LONGEST_PATH];
    const char *name;
    struct stat status;
    int place = folder_of(path, &name), file = -1;
    if (place >= 0) {
        file = openat(place, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        close(place);
    }
    if (file < 0 || fstat(file, &status) < 0) {
        say_error(path);
    } else if (!S_ISREG(status.st_mode)) {
        errno = EINVAL;
        say_error(path);
    } else {
        say('h', entry, entry_of(entry, &status, path, ""));
        uint64_t end = (uint64_t)status.st_size;
        while (offset < end) {
            size_t most = end - offset < sizeof piece ? (size_t)(end - offset) : sizeof piece;
            ssize_t got = pread(file, piece, most, (off_t)offset);
            if (got <= 0) break; /* the size at its end tells */
            say('d', piece, (size_t)got);
            offset += (uint64_t)got;
        }
        memset(&status, 0, sizeof status);
        fstat(file, &status);
        say('h', entry, entry_of(entry, &status, path, ""));
    }
    if (file >= 0) close(file);
}

/* Bringing */

static void answer_put(const unsigned char *numbers, const char *path) {
    static unsigned count;
    mode_t mode = (mode_t)load(numbers, 4) & 07777;
    int64_t changed_at = (int64_t)load(numbers + 4, 8);
    uint64_t left = load(numbers + 12, 8);
    struct timespec times[2] = {{changed_at / 1000000000, changed_at % 1000000000}, {changed_at / 1000000000, changed_at % 1000000000}};
    char draft[64];
    const char *name;
    int error = 0, place, file;
    snprintf(draft, sizeof draft, DRAFTS "/%ld-%u", (long)getpid(), count++);
    file = openat(exchange.top, draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) error = errno;
    while (left) {
        unsigned char *piece;
        size_t size = some(&piece, left < PIECE ? (size_t)left : PIECE), done = 0;
        left -= size;
        while (!error && done < size) {
            ssize_t got = write(file, piece + done, size - done);
            if (got < 0 && errno != EINTR) error = errno;
            if (got > 0) done += (size_t)got;
        }
    }
    if (!error && (fchmod(file, mode) < 0 || futimens(file, times) < 0)) error = errno;
    if (file >= 0) close(file);
    if (!error) {
        if ((place = folder_of(path, &name)) < 0 || renameat(exchange.top, draft, place, name) < 0) error = errno;
        if (place >= 0) close(place);
    }
    if (error) {
        unlinkat(exchange.top, draft, 0);
        errno = error;
        say_error(path);
    }
}

static void answer_folder(mode_t mode, const char *path) {
    char part[LONGEST_PATH + 2];
    const char *name;
    int place = -1;
    for (size_t length = strcspn(path, "/"); path[length];) {
        length += 1 + strcspn(path + length + 1, "/");
        if (length >= sizeof part) break;
        memcpy(part, path, length), part[length] = 0;
        place = folder_of(part, &name);
        if (place < 0 || (mkdirat(place, name, mode) < 0 && errno != EEXIST)) say_error(path), length = strlen(path);
        if (place >= 0) close(place);
    }
}

static int remove_all(int place, const char *name, int depth) {
    if (unlinkat(place, name, 0) == 0 || errno == ENOENT) return 0;
    int folder = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *listing = folder < 0 || depth > DEEPEST ? NULL : fdopendir(folder);
    struct dirent *item;
    if (!listing) return -1;
    while ((item = readdir(listing)))
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0) remove_all(dirfd(listing), item->d_name, depth + 1);
    closedir(listing);
    return unlinkat(place, name, AT_REMOVEDIR);
}

static void answer_remove(const char *path) {
    const char *name;
    int place = folder_of(path, &name);
    if (place < 0 ? errno != ENOENT : remove_all(place, name, 0) < 0) say_error(path);
    if (place >= 0) close(place);
}

static void answer_link(const char *target, const char *path) {
    const char *name;
    int place = folder_of(path, &name);
    if (place >= 0) unlinkat(place, name, 0);
    if (place < 0 || symlinkat(target, place, name) < 0) say_error(path);
    if (place >= 0) close(place);
}

static void answer(unsigned char kind, unsigned char *data, size_t size) {
    char *words_of_frame = (char *)data; /* a zero follows */
    if (kind == 'L' && size >= 9) answer_list(data, words_of_frame + 9);
    else if (kind == 'G' && size >= 8) answer_get(words_of_frame + 8, load(data, 8));
    else if (kind == 'P' && size >= 20) answer_put(data, words_of_frame + 20);
    else if (kind == 'M' && size >= 4) answer_folder((mode_t)load(data, 4) & 07777, words_of_frame + 4);
    else if (kind == 'K' && strlen(words_of_frame) < size) answer_link(words_of_frame, words_of_frame + strlen(words_of_frame) + 1);
    else if (kind == 'X') answer_remove(words_of_frame);
    else if (kind == 'S') say('.', "", 0);
    else _exit(1);
}

static void serve_files(int connection, const char *rest) {
    static unsigned char data[MOST_FRAME + 1];
    unsigned char head[5];
    (void)rest;
    for (int fd = 3; fd < 256; fd++) /* the connections of others end when the init says so */
        if (fd != connection) close(fd);
    umask(0);
    exchange.connection = connection;
    exchange.top = open(FILES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (exchange.top < 0) _exit(1);
    remove_all(exchange.top, DRAFTS, 0); /* of one that was killed */
    mkdirat(exchange.top, DRAFTS, 0700);
    for (;;) {
        take(head, sizeof head);
        size_t size = (size_t)load(head + 1, 4);
        if (size > MOST_FRAME) _exit(1);
        take(data, size);
        data[size] = 0;
        answer(head[0], data, size);
    }
}

/* The init itself */

static uint64_t files_at_start;

/* Make the folders, before anybody looks for them. What is not mounted there stays away. */
static void make_files(void) {
    static const char *const folders[] = {"code", "gcs", "layer", "report", "tmp", NULL};
    mode_t before = umask(0);
    exchange.top = open(FILES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; folders[i] && exchange.top >= 0; i++) mkdirat(exchange.top, folders[i], 0777);
    if (exchange.top >= 0) setenv("TMPDIR", FILES "tmp", 0);
    umask(before);
}

static void put_first(const char *variable, const char *folder, const char *otherwise) {
    char *rest = getenv(variable), *all = NULL;
    if (!rest) rest = (char *)otherwise;
    if (asprintf(&all, *rest ? "%s:%s" : "%s%s", folder, rest) > 0) setenv(variable, all, 1);
    free(all);
}

/* Have the program find first what is installed on top of its image. */
static void use_layer(void) {
    put_first("PATH", FILES "layer/bin", PATH);
    put_first("PYTHONPATH", FILES "layer/site", "");
}

/* Whether anything below /gcs has changed since the program began. */
static int has_written(void) { return exchange.top >= 0 && look("gcs") != files_at_start; }
