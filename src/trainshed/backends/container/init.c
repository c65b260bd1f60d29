/* The init of every container: PID 1, which holds the program's exit status while no server runs.
 *
 *     /.trainshed/init [--hold] [--hatch PORT]... PROGRAM [ARG...]
 *     /.trainshed/remote ...             where replicas start programs in others: see machine/remote.h
 *
 * --hatch makes a loopback port: a port on the container's own loopback that leads to the same port of the machine.
 * The init listens there and never answers: it passes the socket to the server that listens at
 * /.trainshed/hatch/socket (serving/loopback_server.py), again after every restart of the server. Meanwhile connections wait.
 *
 * The server mounts three files one by one, so that nothing inside can replace them:
 *
 *     /.trainshed/record    spaces, which it overwrites in place, a line each (that works on a full disk):
 *
 *         init BOOT NANOSECONDS              it has begun; a record with this line is never begun again
 *         unstarted ERRNO                    its program cannot be run
 *         oom COUNT                          processes the kernel killed here for want of memory
 *         refused COUNT                      processes and threads the kernel refused here at their limit
 *         held exit CODE NANOSECONDS         or: held signal NUMBER NANOSECONDS
 *         exit CODE NANOSECONDS              or: signal NUMBER NANOSECONDS
 *
 *     /.trainshed/out, /.trainshed/err       the program's output, opened for appending
 *
 * With --hold the container of a program that fails without having been asked to end stays until SIGTERM.
 *
 * It has a lock on the record as long as it lives: by that the server finds its pid and knows that it lives,
 * without asking the engine. The first SIGTERM it gets goes to all others in the container, further
 * ones to nobody. It never writes the last line before all processes that the program left are gone. It writes to
 * the program's output only to say why the program cannot run.
 */
#define _GNU_SOURCE
#include "../machine/init.h"
#include "../machine/remote.h"
#include <arpa/inet.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#define HOME "/.trainshed/"
#define SPENT 125 /* it was begun before, or cannot begin */

#define PORTS 8
#define RETRY 200 /* milliseconds between two tries to reach a server */

static int record = -1;
static int ports[PORTS], opened, server = -1;

static void note(const char *line) {
    struct timespec pause = {0, 100000000L};
    size_t length = strlen(line);
    while (write(record, line, length) < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EINTR))
        nanosleep(&pause, NULL);
}

/* Whether this is the first start. The lock comes before the line, so whoever reads the line finds its writer. */
static int claim(void) {
    char first = 0, line[160];
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    record = open(HOME "record", O_RDWR | O_CLOEXEC);
    if (record < 0 || fcntl(record, F_SETLK, &whole) < 0) return 0;
    if (pread(record, &first, 1, 0) != 1 || first != ' ') return 0;
    name_start(line, sizeof line);
    note(line);
    return 1;
}

static int put(const char *path, int how, int as) {
    int fd = open(path, how | O_NOCTTY);
    if (fd < 0) return -1;
    if (fd != as && (dup2(fd, as) < 0 || close(fd) < 0)) return -1;
    return 0;
}

static void note_unstarted(int error) {
    char line[64];
    snprintf(line, sizeof line, "unstarted %d\n", error);
    note(line);
}

static void note_end(const char *how, int status) {
    static int is_counted; /* once, also for a held container: a shell in it may have been killed since */
    char line[128];
    if (!is_counted++) {
        name_counts(line, sizeof line);
        note(line);
    }
    name_end(line, sizeof line, how, status);
    note(line);
}

static void open_port(const char *port) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
    int yes = 1, fd = opened < PORTS ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
    if (fd < 0) return;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&place, sizeof place) == 0 && listen(fd, SOMAXCONN) == 0)
        ports[opened++] = fd;
    else
        close(fd);
}

/* The server on the other end has the loopback ports: when it closes the connection, they are passed on again. */
static void pass_ports(void) {
    struct sockaddr_un place = {.sun_family = AF_UNIX, .sun_path = HOME "hatch/socket"};
    union {
        char room[CMSG_SPACE(sizeof ports)];
        struct cmsghdr align;
    } held;
    struct iovec word = {.iov_base = "h", .iov_len = 1};
    size_t size = (size_t)opened * sizeof *ports;
    struct msghdr message = {.msg_iov = &word, .msg_iovlen = 1};
    memset(&held, 0, sizeof held);
    message.msg_control = held.room;
    message.msg_controllen = CMSG_SPACE(size);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(head), ports, size);
    server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (server < 0) return;
    if (connect(server, (struct sockaddr *)&place, sizeof place) == 0 &&
        sendmsg(server, &message, MSG_NOSIGNAL) == 1)
        return;
    close(server);
    server = -1;
}

/* Serve the loopback ports until there is a signal. */
static void serve_ports(int signals) {
    struct pollfd wait[2] = {{.fd = signals, .events = POLLIN}, {.events = POLLIN}};
    char word;
    ssize_t got;
    while (opened) {
        if (server < 0) pass_ports();
        wait[1].fd = server;
        wait[1].revents = 0;
        poll(wait, 2, server < 0 ? RETRY : -1);
        if (wait[1].revents && ((got = read(server, &word, 1)) == 0 || (got < 0 && errno != EAGAIN))) {
            close(server);
            server = -1;
            poll(wait, 1, RETRY); /* no busy loop with a server that hangs up at once */
        }
        if (wait[0].revents) return;
    }
}

/* The program's status once it has ended; without a program, wait until asked to end. Reaps all other children. */
static int hold(pid_t program, int signals, int *asked) {
    struct signalfd_siginfo told;
    int status;
    pid_t gone;
    while (program || !*asked) {
        serve_ports(signals);
        if (read(signals, &told, sizeof told) != sizeof told) continue;
        if (told.ssi_signo == SIGTERM && !*asked) {
            *asked = 1;
            kill(-1, SIGTERM);
        }
        while ((gone = waitpid(-1, &status, WNOHANG)) > 0)
            if (program && gone == program) return status;
    }
    return 0;
}

int main(int count, char **words) {
    struct timespec pause = {0, 50000000L};
    sigset_t every;
    int signals, status, asked = 0, held = 0;
    pid_t program;
    if (is_remote(words[0])) return remote_main(count, words);
    if (count < 2) return 2;
    prctl(PR_SET_DUMPABLE, 0);
    sigfillset(&every);
    sigprocmask(SIG_SETMASK, &every, NULL);
    signals = signalfd(-1, &every, SFD_CLOEXEC);
    if (signals < 0 || !claim()) return SPENT;
    if (put("/dev/null", O_RDONLY, 0) < 0 || put(HOME "out", O_WRONLY | O_APPEND, 1) < 0 ||
        put(HOME "err", O_WRONLY | O_APPEND, 2) < 0) {
        note_end("", 126 << 8);
        return 126;
    }
    if (count > 2 && strcmp(words[1], "--hold") == 0) {
        held = 1;
        words++;
        count--;
    }
    while (count > 3 && strcmp(words[1], "--hatch") == 0) {
        open_port(words[2]);
        words += 2;
        count -= 2;
    }
    while ((program = fork()) < 0) nanosleep(&pause, NULL); /* no room for a process now: try again */
    if (program == 0) become(words + 1, note_unstarted);
    status = hold(program, signals, &asked);
    clear();
    if (held && status && !asked) {
        note_end("held ", status);
        hold(0, signals, &asked);
        clear();
    }
    note_end("", status);
    return shell_status(status);
}
