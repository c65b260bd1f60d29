/* Programs that a replica starts in other replicas of its job, as others do over ssh: without keys, users or a daemon.
 *
 *     remote --serve NAME ADDRESS PORT [PROGRAM [ARG...]]  in the others: starts what it is asked for, until it is ended
 *     remote --launch FILE SECONDS PROGRAM [ARG...]        waits until all others answer, then becomes the program
 *     remote [OPTION...] HOST [OPTION...] WORD...          what runs as the remote shell: `sh -c "WORD..."` at HOST
 *
 * The inits of containers and pods are this too where they are called `remote`; remote.c is this alone. Variables say
 * all else:
 *
 *     TRAINSHED_REMOTE_SECRET    proves that both ends belong to one job; nobody is served without it
 *     TRAINSHED_REMOTE_HOSTS     the others, a word each: NAME[,NAME...]=ADDRESS:PORT; a name is looked up in /etc/hosts
 *     TRAINSHED_REMOTE_LIST      what --launch writes into FILE before the program begins
 *
 * A server is called NAME as a host, where it may choose that: programs take two replicas of one name for one machine.
 * A server with a PROGRAM runs it beside and ends as it ends. The remote shell understands ssh's options and heeds
 * none: who it becomes and how it gets there is decided. It ends as the command ends, or with 255 as ssh does.
 * A connection that breaks ends all that was started through it. What a command leaves behind when it ends by itself
 * stays, as with ssh.
 *
 * The caller says "SECRET LENGTH\n" and so many bytes of a command (none: it only asks whether somebody is there). The
 * server says "+". Then the caller sends pieces of the standard input, each with its length in four bytes, an empty one
 * at the end; and gets frames: a letter (o, e: output; x: the status, in one byte), the length in four bytes, the bytes.
 */
#include "address.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define REMOTE_SECRET "TRAINSHED_REMOTE_SECRET"
#define REMOTE_HOSTS "TRAINSHED_REMOTE_HOSTS"
#define REMOTE_LIST "TRAINSHED_REMOTE_LIST"
#define REMOTE_NAMES "/etc/hosts"
#define REMOTE_CHUNK 65536
#define REMOTE_COMMAND (4 << 20) /* bytes at most */
#define REMOTE_CALLS 512         /* at once */
#define REMOTE_GREETING 10       /* seconds for a caller to prove itself */
#define REMOTE_PATIENCE 30       /* seconds for which the remote shell tries to reach a host that is not there yet */
#define REMOTE_GRACE 3           /* seconds between SIGTERM and SIGKILL, once a connection broke */
#define REMOTE_BROKEN 255        /* as ssh */

static const char remote_usage[] =
    "usage: remote --serve NAME ADDRESS PORT [PROGRAM...] | remote --launch FILE SECONDS PROGRAM... | remote HOST COMMAND...\n";

static void remote_pause(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static long remote_clock(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (long)time.tv_sec;
}

static int remote_write(int fd, const char *data, size_t size) {
    while (size) {
        ssize_t done = write(fd, data, size);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = fd, .events = POLLOUT};
            poll(&wait, 1, -1);
            continue;
        }
        if (done <= 0) return 0;
        data += done;
        size -= (size_t)done;
    }
    return 1;
}

static int remote_read(int fd, void *into, size_t size) {
    for (char *at = into; size;) {
        ssize_t got = read(fd, at, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return 0;
        at += got;
        size -= (size_t)got;
    }
    return 1;
}

static int remote_frame(int fd, char kind, const char *data, size_t size) {
    char head[5] = {kind};
    uint32_t length = htonl((uint32_t)size);
    memcpy(head + 1, &length, 4);
    return remote_write(fd, head, sizeof head) && remote_write(fd, data, size);
}

/* A peer that vanished without a word is noticed within a minute. */
static void remote_keep_alive(int fd) {
    int yes = 1, idle = 30, every = 10, times = 3;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &times, sizeof times);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/* The server */

/* Signal all processes below this one; how many there are. Orphans among them are its children too. */
static int remote_signal_all(int number) {
    struct kin {
        pid_t pid, parent;
        int is_ours;
    } *list = NULL;
    size_t count = 0, room = 0;
    int ours = 0, is_new = 1;
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        char path[300], content[512], *place;
        int parent, fd = -1;
        ssize_t got = -1;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        if (atoi(entry->d_name) <= 0 || (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0) continue;
        got = read(fd, content, sizeof content - 1);
        close(fd);
        content[got > 0 ? got : 0] = 0;
        if (!(place = strrchr(content, ')')) || sscanf(place + 1, " %*c %d", &parent) != 1) continue;
        if (count == room && !(list = realloc(list, (room = 2 * room + 256) * sizeof *list))) break;
        list[count++] = (struct kin){.pid = atoi(entry->d_name), .parent = parent};
    }
    if (folder) closedir(folder);
    while (list && is_new) {
        is_new = 0;
        for (size_t i = 0; i < count; i++)
            for (size_t j = 0; !list[i].is_ours && j <= count; j++)
                if (j == count ? list[i].parent == getpid() : list[j].is_ours && list[i].parent == list[j].pid)
                    list[i].is_ours = is_new = 1;
    }
    for (size_t i = 0; list && i < count; i++)
        if (list[i].is_ours) {
            kill(list[i].pid, number);
            ours++;
        }
    free(list);
    return ours;
}

static void remote_end_all(void) {
    long until = remote_clock() + REMOTE_GRACE;
    remote_signal_all(SIGTERM);
    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0) continue;
        if (!remote_signal_all(remote_clock() < until ? 0 : SIGKILL)) return;
        remote_pause(20);
    }
}

/* Compared in constant time, so that nobody can find it letter by letter. */
static int remote_is_secret(const char *given) {
    const char *secret = getenv(REMOTE_SECRET);
    size_t length = strlen(secret);
    unsigned char other = strlen(given) != length;
    for (size_t i = 0, size = strlen(given); i < length && size; i++)
        other |= (unsigned char)(secret[i] ^ given[i % size]);
    return !other;
}

/* The command that the caller asks for; NULL where it has not proven itself, or only asks whether somebody is there. */
static char *remote_hear(int caller) {
    struct timeval patience = {.tv_sec = REMOTE_GREETING}, none = {0};
    char line[256], *rest = NULL, *command;
    size_t length = 0;
    long size;
    setsockopt(caller, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    while (length < sizeof line - 1 && remote_read(caller, line + length, 1) && line[length] != '\n') length++;
    line[length] = 0;
    if (!(rest = strchr(line, ' '))) return NULL;
    *rest++ = 0;
    size = atol(rest);
    if (!remote_is_secret(line) || size < 0 || size > REMOTE_COMMAND) return NULL;
    command = calloc((size_t)size + 1, 1);
    if (!command || !remote_read(caller, command, (size_t)size) || !remote_write(caller, "+", 1)) return NULL;
    setsockopt(caller, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    return size ? command : NULL;
}

/* Start the command in a session of its own. `ends` are ours: of its standard input, output and error. */
static pid_t remote_start(const char *command, int ends[3]) {
    int pipes[3][2];
    sigset_t none;
    pid_t child;
    for (int i = 0; i < 3; i++)
        if (pipe2(pipes[i], O_CLOEXEC) < 0) return -1;
    child = fork();
    if (child == 0) {
        setsid();
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        signal(SIGPIPE, SIG_DFL);
        for (int i = 0; i < 3; i++) dup2(pipes[i][i ? 1 : 0], i);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        dprintf(2, "trainshed: cannot run /bin/sh: %s\n", strerror(errno));
        _exit(127);
    }
    for (int i = 0; i < 3; i++) {
        close(pipes[i][i ? 1 : 0]);
        ends[i] = pipes[i][i ? 0 : 1];
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
    }
    return child;
}

/* Send what is there: more than 1 where there was some, 1 where there is nothing now, 0 where there is nothing more, ever. */
static int remote_relay(int caller, char kind, int from) {
    static char piece[REMOTE_CHUNK];
    ssize_t got = read(from, piece, sizeof piece);
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
    if (!remote_frame(caller, kind, piece, (size_t)got)) remote_end_all(), _exit(0);
    return (int)got + 1;
}

/* What the caller sent of its standard input and the command has not read yet. */
static struct {
    char piece[REMOTE_CHUNK];
    size_t size, done;
} remote_input;

/* A piece of the caller's standard input: 1 where there may be more, 0 at its end, -1 where the connection broke. */
static int remote_take(int caller) {
    uint32_t size;
    if (!remote_read(caller, &size, 4) || (size = ntohl(size)) > sizeof remote_input.piece) return -1;
    remote_input.size = size, remote_input.done = 0;
    return remote_read(caller, remote_input.piece, size) ? size != 0 : -1;
}

/* Pass on what it takes now; 0 where it reads no more. */
static int remote_give(int into) {
    size_t left = remote_input.size - remote_input.done;
    ssize_t done = write(into, remote_input.piece + remote_input.done, left);
    if (done < 0 && errno != EAGAIN && errno != EINTR) return 0;
    remote_input.done += done > 0 ? (size_t)done : 0;
    return 1;
}

static void remote_close(int *end) {
    if (*end >= 0) close(*end);
    *end = -1;
}

static int remote_children(void) {
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    return signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The status of that child as a shell tells it, once it has ended; else -1. All others are reaped and counted. */
static int remote_reap(int signals, pid_t child, int *others) {
    struct signalfd_siginfo news;
    int status, code = -1;
    pid_t gone;
    while (read(signals, &news, sizeof news) > 0) continue;
    while ((gone = waitpid(-1, &status, WNOHANG)) > 0) {
        if (gone == child) code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        else ++*others;
    }
    return code;
}

/* Serve one caller, in a process of its own, until the command has ended or the connection broke. */
static void remote_serve_caller(int caller) {
    int ends[3], signals, others, code = -1, taken = 1;
    char *command = remote_hear(caller), status;
    pid_t child;
    if (!command) return;
    signals = remote_children();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    remote_keep_alive(caller);
    if (signals < 0 || (child = remote_start(command, ends)) < 0) return;
    free(command);
    while (code < 0) {
        int is_full = remote_input.done < remote_input.size && ends[0] >= 0;
        struct pollfd wait[5] = {{.fd = caller, .events = is_full ? POLLRDHUP : POLLIN | POLLRDHUP},
                                 {.fd = signals, .events = POLLIN},
                                 {.fd = ends[1], .events = POLLIN},
                                 {.fd = ends[2], .events = POLLIN},
                                 {.fd = is_full ? ends[0] : -1, .events = POLLOUT}};
        poll(wait, 5, -1);
        code = remote_reap(signals, child, &others);
        for (int i = 1; i < 3; i++)
            if (wait[i + 1].revents && !remote_relay(caller, i == 1 ? 'o' : 'e', ends[i])) remote_close(&ends[i]);
        if (wait[4].revents && !remote_give(ends[0])) remote_close(&ends[0]);
        if (code >= 0 || !wait[0].revents) continue;
        taken = !is_full && wait[0].revents & POLLIN ? remote_take(caller) : -1;
        if (taken < 0) return remote_end_all();
        if (taken == 0) remote_close(&ends[0]);
    }
    for (int i = 1; i < 3; i++)
        while (ends[i] >= 0 && remote_relay(caller, i == 1 ? 'o' : 'e', ends[i]) > 1) continue;
    status = (char)code;
    remote_frame(caller, 'x', &status, 1);
}

static int remote_listen(const char *address, const char *port) {
    int fd = listen_at(address, atoi(port), SOMAXCONN);
    if (fd < 0) dprintf(2, "trainshed: it cannot listen at %s, port %s: %s\n", address, port, strerror(errno));
    return fd;
}

static void remote_become(char **words) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(words[0], words);
    int error = errno;
    dprintf(2, "trainshed: cannot run '%s': %s\n", words[0], strerror(error));
    _exit(error == ENOENT || error == ENOTDIR ? 127 : 126);
}

/* Be a host of that name; without the right to it the name of the machine stays. */
static void remote_be_host(const char *name) {
    char now[256] = "";
    gethostname(now, sizeof now - 1);
    if (strcmp(now, name) != 0 && unshare(CLONE_NEWUTS) == 0 && sethostname(name, strlen(name)) < 0)
        dprintf(2, "trainshed: the host is not called %s: %s\n", name, strerror(errno));
}

static int remote_serve(const char *address, const char *port, char **program) {
    int calls = 0, listener = remote_listen(address, port), signals = remote_children();
    pid_t beside = -1;
    if (listener < 0 || signals < 0) return 125;
    if (*program && (beside = fork()) == 0) remote_become(program);
    signal(SIGPIPE, SIG_IGN);
    for (;;) {
        struct pollfd wait[2] = {{.fd = signals, .events = POLLIN},
                                 {.fd = calls < REMOTE_CALLS ? listener : -1, .events = POLLIN}};
        int others = 0;
        poll(wait, 2, -1);
        int code = remote_reap(signals, beside, &others);
        calls -= others;
        if (code >= 0) return code;
        if (!wait[1].revents) continue;
        int caller = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        pid_t child = caller < 0 ? -1 : fork();
        if (child == 0) {
            close(listener);
            remote_serve_caller(caller);
            _exit(0);
        }
        calls += child > 0;
        if (caller >= 0) close(caller);
        if (child < 0) remote_pause(20); /* no room for a process or a file now: it calls again */
    }
}

/* The caller */

/* The address that /etc/hosts has for one of the names, up to a comma or the end. */
static int remote_look_up(const char *names, size_t length, int port, struct address *address) {
    char text[512], row[4096];
    FILE *file = fopen(REMOTE_NAMES, "re");
    int is_known = 0;
    while (file && !is_known && fgets(row, sizeof row, file)) {
        char *rest, *first = strtok_r(row, " \t\n", &rest), *name;
        if (!first || *first == '#') continue;
        while (!is_known && (name = strtok_r(NULL, " \t\n", &rest))) {
            snprintf(text, sizeof text, "%.*s", (int)length, names);
            char *others, *wanted = strtok_r(text, ",", &others);
            for (; wanted && !is_known; wanted = strtok_r(NULL, ",", &others))
                is_known = strcmp(name, wanted) == 0 && read_address(first, port, address);
        }
    }
    if (file) fclose(file);
    return is_known;
}

/* One of the others: NAME[,NAME...]=ADDRESS:PORT up to a space. An address of IPv6 stands in brackets. */
static int remote_address(const char *entry, struct address *place) {
    size_t names = strcspn(entry, "=");
    char host[256], port[8];
    if (sscanf(entry + names, "=[%255[^] ]]:%7[0-9]", host, port) != 2 &&
        sscanf(entry + names, "=%255[^: ]:%7[0-9]", host, port) != 2)
        return 0;
    return read_address(host, atoi(port), place) || remote_look_up(host, strlen(host), atoi(port), place) ||
           remote_look_up(entry, names, atoi(port), place);
}

/* Whether the entry is of that host. A name counts up to its first full stop: the rest is a domain. */
static int remote_is_host(const char *entry, const char *host) {
    size_t wanted = strcspn(host, ".");
    for (size_t length; *entry && *entry != '=' && *entry != ' '; entry += length + (entry[length] == ',')) {
        length = strcspn(entry, ",= ");
        if (length == wanted && strncmp(entry, host, length) == 0) return 1;
    }
    return 0;
}

static const char *remote_next(const char *entry) {
    entry += strcspn(entry, " ");
    return entry + strspn(entry, " ");
}

/* A connection that the server has accepted, for that command; -1, with errno, where there is none. */
static int remote_connect(const char *entry, const char *command) {
    struct address place;
    struct timeval patience = {.tv_sec = REMOTE_GREETING}, none = {0};
    char head[512], answer;
    const char *secret = getenv(REMOTE_SECRET);
    int fd = -1, size;
    errno = EHOSTUNREACH;
    if (!remote_address(entry, &place) || (fd = open_socket(&place, SOCK_STREAM)) < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience); /* of connecting too */
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    size = snprintf(head, sizeof head, "%s %zu\n", secret ? secret : "", strlen(command));
    if (connect(fd, &place.place.any, place.size) == 0 && remote_write(fd, head, (size_t)size) &&
        remote_write(fd, command, strlen(command))) {
        errno = 0;
        if (remote_read(fd, &answer, 1) && answer == '+') {
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof none);
            setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
            remote_keep_alive(fd);
            return fd;
        }
        if (!errno) errno = EACCES; /* it hung up: it has another secret */
    }
    size = errno;
    close(fd);
    errno = size;
    return -1;
}

/* Try until there is a connection, or the time is over; `is_told`: say every ten seconds who is waited for. */
static int remote_reach(const char *entry, const char *command, long seconds, int is_told) {
    long until = remote_clock() + seconds, next = remote_clock() + 10;
    int fd;
    while ((fd = remote_connect(entry, command)) < 0 && errno != EACCES && remote_clock() < until) {
        if (is_told && remote_clock() >= next) {
            dprintf(2, "trainshed: waiting for %.*s: %s\n", (int)strcspn(entry, ",="), entry, strerror(errno));
            next += 10;
        }
        remote_pause(100);
    }
    return fd;
}

static int remote_relay_all(int server, const char *host) {
    static char piece[REMOTE_CHUNK];
    struct pollfd wait[2] = {{.fd = server, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
    uint32_t size;
    char kind;
    for (;;) {
        poll(wait, 2, -1);
        if (wait[1].revents) {
            ssize_t got = read(0, piece, sizeof piece);
            if (got < 0 && (errno == EAGAIN || errno == EINTR)) got = -1;
            else if (got <= 0) got = 0, wait[1].fd = -1;
            size = htonl((uint32_t)got);
            if (got >= 0 && (!remote_write(server, (char *)&size, 4) || !remote_write(server, piece, (size_t)got)))
                wait[1].fd = -1; /* what it said before is still to be read */
        }
        if (!wait[0].revents) continue;
        if (!remote_read(server, &kind, 1) || !remote_read(server, &size, 4) || (size = ntohl(size)) > sizeof piece ||
            !remote_read(server, piece, size)) {
            dprintf(2, "trainshed: the connection to %s broke off\n", host);
            return REMOTE_BROKEN;
        }
        if (kind == 'x') return (unsigned char)piece[0];
        remote_write(kind == 'o' ? 1 : 2, piece, size);
    }
}

/* The number of words that an option of ssh takes: itself, and its value if that is a word of its own. */
static int remote_option(const char *word) { return word[1] && strchr("BbcDEeFIiJLlmOopQRSWw", word[1]) && !word[2] ? 2 : 1; }

static int remote_shell(char **words) {
    const char *host, *at, *entry = getenv(REMOTE_HOSTS);
    while (*words && **words == '-')
        for (int count = remote_option(*words); count-- && *words;) words++;
    if (!*words) return dprintf(2, "%s", remote_usage), 2;
    host = (at = strchr(*words, '@')) ? at + 1 : *words;
    words++;
    while (*words && **words == '-')
        for (int count = remote_option(*words); count-- && *words;) words++;
    if (!*words) return dprintf(2, "trainshed: no command for %s: it starts programs and opens no shells\n", host), REMOTE_BROKEN;
    while (entry && *entry && !remote_is_host(entry, host)) entry = remote_next(entry);
    if (!entry || !*entry)
        return dprintf(2, "trainshed: '%s' is none of the replicas that start programs for this job\n", host), REMOTE_BROKEN;
    size_t length = 1;
    for (char **word = words; *word; word++) length += strlen(*word) + 1;
    char *command = calloc(length, 1);
    for (char **word = words; command && *word; word++) {
        if (word > words) strcat(command, " ");
        strcat(command, *word);
    }
    signal(SIGPIPE, SIG_IGN);
    int server = command ? remote_reach(entry, command, REMOTE_PATIENCE, 0) : -1;
    if (server < 0) {
        const char *why = errno == EACCES ? "it refuses this job's secret" : strerror(errno);
        return dprintf(2, "trainshed: %s cannot be reached: %s\n", host, why), REMOTE_BROKEN;
    }
    return remote_relay_all(server, host);
}

static int remote_launch(const char *file, long seconds, char **program) {
    const char *text = getenv(REMOTE_LIST), *entry = getenv(REMOTE_HOSTS);
    long until = remote_clock() + seconds;
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || !remote_write(fd, text ? text : "", text ? strlen(text) : 0))
        return dprintf(2, "trainshed: the list of hosts cannot be written to %s: %s\n", file, strerror(errno)), 125;
    close(fd);
    unsetenv(REMOTE_LIST);
    for (; entry && *entry; entry = remote_next(entry)) {
        long left = until - remote_clock();
        fd = remote_reach(entry, "", left > 0 ? left : 0, 1);
        if (fd < 0) {
            int names = (int)strcspn(entry, ",=");
            const char *why = errno == EACCES ? "it refuses this job's secret" : strerror(errno);
            dprintf(2, "trainshed: %.*s does not answer after %ld s (%s), so the program is not started\n", names, entry,
                    seconds, why);
            return 1;
        }
        close(fd);
    }
    remote_become(program);
    return 126;
}

static int remote_main(int count, char **words) {
    if (count > 1 && strncmp(words[1], "--", 2) == 0 && (!getenv(REMOTE_SECRET) || !*getenv(REMOTE_SECRET)))
        return dprintf(2, "trainshed: %s is not set: nobody could be trusted\n", REMOTE_SECRET), 125;
    if (count > 4 && strcmp(words[1], "--serve") == 0) {
        remote_be_host(words[2]);
        return remote_serve(words[3], words[4], words + 5);
    }
    if (count > 4 && strcmp(words[1], "--launch") == 0) return remote_launch(words[2], atol(words[3]), words + 4);
    if (count > 1 && strncmp(words[1], "--", 2) != 0) return remote_shell(words + 1);
    dprintf(2, "%s", remote_usage);
    return 2;
}

/* Whether a program that is something else, too, was called as this. */
__attribute__((unused)) static int is_remote(const char *name) {
    const char *slash = strrchr(name, '/');
    return strcmp(slash ? slash + 1 : name, "remote") == 0;
}
