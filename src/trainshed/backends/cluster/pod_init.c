/* The init of every pod: PID 1, which starts the program when the server says so and holds its output and its end.
 *
 *     /.trainshed/bin/init PORT HOLD_SECONDS [--begin] [--hold] PROGRAM [ARG...]
 *
 * The program's output goes to files in /.trainshed/run, which live as long as the pod. What happened goes into the
 * termination message, which Kubernetes keeps with the pod, a line each:
 *
 *     init BOOT NANOSECONDS              the program was begun
 *     unstarted ERRNO                    its program cannot be run
 *     oom COUNT                          processes the kernel killed here for want of memory
 *     refused COUNT                      processes and threads the kernel refused here at their limit
 *     held exit CODE NANOSECONDS         or: held signal NUMBER NANOSECONDS
 *     exit CODE NANOSECONDS              or: signal NUMBER NANOSECONDS
 *
 * The server connects to PORT, and says first
 *
 *     TRAINSHED_POD_TOKEN OFFSET OFFSET  how much of the standard output and of the standard error it has already
 *
 * and then, a line each: go (begin the program), term (ask all to end, once), kill (kill all), done (I have all).
 * It gets frames: a letter, the length in four bytes, and so many bytes: o and e, output; r, the record so far.
 * The frame with the end comes after all output. Of several servers the last one to connect is heard.
 * For `kubectl logs` the output is also copied to the init's own, as fast as that is read.
 *
 * Where TRAINSHED_POD_NAMES has names, the program begins once the cluster's DNS knows each of them, or after a while.
 *
 * With --begin the program begins at once, without the server's word.
 * With --hold the place of a program that fails without having been asked to end stays until it is asked.
 * After the end the init waits for "done", for HOLD_SECONDS at most: nobody can read the output of a pod that is gone.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef FOLDER /* tests have others */
#define FOLDER "/.trainshed/run/"
#define RECORD "/dev/termination-log"
#endif
#define PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define TOKEN "TRAINSHED_POD_TOKEN"
#define NAMES "TRAINSHED_POD_NAMES"
#define MOST_NAMES 64
#define ASK_AGAIN 100000000LL   /* nanoseconds between two questions for a name */
#define GIVE_UP 30000000000LL   /* nanoseconds after which the program begins although names are not known */
#define BROKEN 125 /* it cannot begin */
#define CHUNK 65536

enum { WAITING, RUNNING, HELD, ENDED };

static char text[2048]; /* the record */
static int state = WAITING, asked, holds, status;
static pid_t program;
static char **words;
static int record = -1, watch = -1, listener = -1, client = -1, newcomer = -1;
static int output[2]; /* for reading: standard output, standard error */
static long long sent[2], shown[2]; /* to the client; to the log that Kubernetes keeps */
static size_t told; /* bytes of the record that the client has been told */
static char line[256], greeting[512];
static size_t line_length, greeting_length;

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (long long)t.tv_sec * 1000000000LL + t.tv_nsec;
}

static ssize_t slurp(const char *path, char *into, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t got = read(fd, into, size - 1);
    close(fd);
    into[got < 0 ? 0 : got] = 0;
    return got;
}

static void note(const char *words_of_line) {
    size_t length = strlen(text);
    snprintf(text + length, sizeof text - length, "%s", words_of_line);
    if (record >= 0 && write(record, words_of_line, strlen(words_of_line)) < 0) record = -1;
}

/* The program */

static void become(void) {
    sigset_t none;
    char problem[64];
    int code;
    setsid();
    prctl(PR_SET_DUMPABLE, 1);
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (!getenv("PATH")) setenv("PATH", PATH, 1);
    execvp(words[0], words);
    if (errno == ENOENT && (strcmp(words[0], "python") == 0 || strcmp(words[0], "python3") == 0)) {
        /* Images have one of the two names: either means their interpreter, as it does for processes. */
        execvp(strcmp(words[0], "python") ? "python" : "python3", words);
        errno = ENOENT;
    }
    snprintf(problem, sizeof problem, "%d", errno);
    code = errno == ENOENT || errno == ENOTDIR ? 127 : 126;
    dprintf(2, "trainshed: cannot run '%s': %s\n", words[0], strerror(errno));
    write(3, problem, strlen(problem) + 1);
    _exit(code);
}

static void begin(void) {
    char boot[64] = "-", entry[160], problem[64];
    int why[2];
    struct timespec pause = {0, 50000000L};
    if (state != WAITING) return;
    if (slurp("/proc/sys/kernel/random/boot_id", boot, sizeof boot) > 0) boot[strcspn(boot, "\n")] = 0;
    snprintf(entry, sizeof entry, "init %s %lld\n", boot, now());
    note(entry);
    if (pipe2(why, O_CLOEXEC) < 0) why[0] = why[1] = -1;
    while ((program = fork()) < 0) nanosleep(&pause, NULL); /* no room for a process now: try again */
    if (program == 0) {
        int out = open(FOLDER "out", O_WRONLY | O_APPEND | O_CLOEXEC), err = open(FOLDER "err", O_WRONLY | O_APPEND | O_CLOEXEC);
        int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC), told_to = fcntl(why[1], F_DUPFD_CLOEXEC, 10);
        dup2(nothing, 0), dup2(out, 1), dup2(err, 2), dup3(told_to, 3, O_CLOEXEC);
        become();
    }
    close(why[1]);
    ssize_t got = read(why[0], problem, sizeof problem - 1); /* until it runs, or cannot */
    close(why[0]);
    if (got > 0) {
        problem[got] = 0;
        snprintf(entry, sizeof entry, "unstarted %s\n", problem);
        note(entry);
    }
    state = RUNNING;
}

/* The names of the others */

static char *names[MOST_NAMES];
static int named, known[MOST_NAMES], resolver = -1, is_to_begin;
static long long asked_at, named_since;

static void read_names(void) {
    char config[4096], *place, *rest;
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(53)};
    char *list = getenv(NAMES) ? strdup(getenv(NAMES)) : NULL;
    unsetenv(NAMES);
    if (!list || slurp("/etc/resolv.conf", config, sizeof config) <= 0) return;
    for (place = strtok_r(config, "\n", &rest); place; place = strtok_r(NULL, "\n", &rest)) {
        char address[64];
        if (sscanf(place, "nameserver %63s", address) == 1 && inet_pton(AF_INET, address, &server.sin_addr) == 1) break;
    }
    if (!place) return;
    resolver = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (resolver < 0 || connect(resolver, (struct sockaddr *)&server, sizeof server) < 0) return;
    for (place = strtok_r(list, " ", &rest); place && named < MOST_NAMES; place = strtok_r(NULL, " ", &rest))
        names[named++] = place;
}

/* Ask for the address of one name: its number is the number of the question. */
static void ask_for(int number) {
    unsigned char question[300] = {(unsigned char)(number >> 8), (unsigned char)number, 1, 0, 0, 1};
    size_t size = 12;
    for (const char *label = names[number]; *label;) {
        size_t length = strcspn(label, ".");
        if (length == 0 || length > 63 || size + length > 280) return;
        question[size++] = (unsigned char)length;
        memcpy(question + size, label, length);
        size += length;
        label += length + (label[length] == '.');
    }
    memcpy(question + size, "\0\0\1\0\1", 5);
    if (send(resolver, question, size + 5, MSG_NOSIGNAL) < 0) return; /* it is asked again */
}

/* Begin the program once every name is known. */
static void look_at_names(void) {
    unsigned char answer[1500];
    int missing = 0;
    ssize_t size;
    while ((size = recv(resolver, answer, sizeof answer, MSG_DONTWAIT)) >= 12) {
        int number = answer[0] << 8 | answer[1];
        if (number < named && (answer[3] & 15) == 0 && (answer[6] || answer[7])) known[number] = 1;
    }
    int is_time = now() - asked_at > ASK_AGAIN;
    for (int number = 0; number < named; number++) {
        if (known[number]) continue;
        missing++;
        if (is_time) ask_for(number);
    }
    if (is_time) asked_at = now();
    if (!missing || now() - named_since > GIVE_UP) begin();
}

/* What the kernel counted here under that word: in a file of version 2 of cgroups, else of version 1. */
static long counted(const char *word, const char *const files[2]) {
    char content[1024], *place;
    for (size_t i = 0; i < 2; i++)
        if (slurp(files[i], content, sizeof content) > 0 && (place = strstr(content, word)))
            return atol(place + strlen(word));
    return -1;
}

static void note_counts(void) {
    static const char *const kills[] = {"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"};
    static const char *const refusals[] = {"/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"};
    char entry[128];
    long oom = counted("oom_kill ", kills), refused = counted("max ", refusals);
    if (oom >= 0) {
        snprintf(entry, sizeof entry, "oom %ld\n", oom);
        note(entry);
    }
    if (refused > 0) {
        snprintf(entry, sizeof entry, "refused %ld\n", refused);
        note(entry);
    }
}

static int shell_status(void) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

static void note_end(const char *how) {
    char entry[128];
    if (WIFSIGNALED(status))
        snprintf(entry, sizeof entry, "%ssignal %d %lld\n", how, WTERMSIG(status), now());
    else
        snprintf(entry, sizeof entry, "%sexit %d %lld\n", how, WEXITSTATUS(status), now());
    note(entry);
}

/* Kill all that the program left: nothing of it lives once its end is written. */
static void clear(void) {
    do kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0);
}

static void end(void) {
    clear();
    note_end("");
    state = ENDED;
}

static void ask(void) {
    if (asked++) return;
    if (state == HELD) end();
    if (state == RUNNING) kill(-1, SIGTERM);
}

static void reap(void) {
    int how;
    pid_t gone;
    while ((gone = waitpid(-1, &how, WNOHANG)) > 0) {
        if (gone != program || state != RUNNING) continue;
        status = how;
        clear();
        note_counts();
        if (holds && status && !asked) {
            note_end("held ");
            state = HELD;
        } else {
            note_end("");
            state = ENDED;
        }
    }
}

/* The client */

static void hang_up(void) {
    if (client >= 0) close(client);
    client = -1;
    line_length = 0;
}

static int send_whole(const char *data, size_t size) {
    while (size) {
        ssize_t done = send(client, data, size, MSG_NOSIGNAL);
        if (done < 0 && (errno == EAGAIN || errno == EINTR)) {
            struct pollfd wait = {.fd = client, .events = POLLOUT};
            if (poll(&wait, 1, 10000) > 0) continue; /* a server that reads nothing for so long is gone */
        }
        if (done <= 0) {
            hang_up();
            return 0;
        }
        data += done;
        size -= (size_t)done;
    }
    return 1;
}

static int send_frame(char kind, const char *data, size_t size) {
    char head[5] = {kind};
    uint32_t length = htonl((uint32_t)size);
    memcpy(head + 1, &length, 4);
    return send_whole(head, sizeof head) && send_whole(data, size);
}

/* Send one piece of output; whether there may be more. */
static int send_output(int which) {
    static char piece[CHUNK];
    ssize_t got = client < 0 ? 0 : pread(output[which], piece, sizeof piece, sent[which]);
    if (got <= 0 || !send_frame(which ? 'e' : 'o', piece, (size_t)got)) return 0;
    sent[which] += got;
    return 1;
}

/* Copy a piece of output to the init's own; whether there may be more. Nobody may be reading there. */
static int show_output(int which) {
    static char piece[CHUNK];
    ssize_t got = pread(output[which], piece, sizeof piece, shown[which]), done = 0;
    if (got > 0 && (done = write(which + 1, piece, (size_t)got)) > 0) shown[which] += done;
    return done > 0;
}

static int is_behind(int which) { return lseek(output[which], 0, SEEK_END) > shown[which]; }

static void send_record(void) {
    size_t length = strlen(text);
    if (client >= 0 && told != length && send_frame('r', text, length)) told = length;
}

static void obey(const char *word) {
    if (strcmp(word, "go") == 0 && !is_to_begin) {
        is_to_begin = 1;
        named_since = now();
    }
    if (strcmp(word, "term") == 0) ask();
    if (strcmp(word, "kill") == 0) {
        asked = 1;
        if (state == HELD) end();
        if (state == RUNNING) kill(-1, SIGKILL);
    }
    if (strcmp(word, "done") == 0 && state == ENDED) {
        while (show_output(0) | show_output(1)) continue;
        exit(shell_status());
    }
}

static void listen_to_client(void) {
    char got[256];
    ssize_t size = recv(client, got, sizeof got, MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) hang_up();
    for (ssize_t i = 0; i < size && client >= 0; i++) {
        if (got[i] != '\n') {
            if (line_length < sizeof line - 1) line[line_length++] = got[i];
            continue;
        }
        line[line_length] = 0;
        line_length = 0;
        obey(line);
    }
}

/* Read the first line byte by byte, so that what follows stays for the client. */
static void greet(const char *token) {
    char secret[256], byte;
    long long offsets[2];
    ssize_t size;
    while ((size = recv(newcomer, &byte, 1, MSG_DONTWAIT)) == 1 && byte != '\n' && greeting_length < sizeof greeting - 1)
        greeting[greeting_length++] = byte;
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    greeting[greeting_length] = 0;
    if (size == 1 && byte == '\n' && sscanf(greeting, "%255s %lld %lld", secret, &offsets[0], &offsets[1]) == 3 &&
        strcmp(secret, token) == 0) {
        hang_up();
        client = newcomer;
        sent[0] = offsets[0], sent[1] = offsets[1];
        told = (size_t)-1;
        if (state != ENDED) send_record(); /* the end comes after the output */
    } else
        close(newcomer);
    newcomer = -1;
}

static void welcome(void) {
    int yes = 1, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    if (newcomer >= 0) close(newcomer);
    newcomer = fd;
    greeting_length = 0;
}

static int open_listener(const char *port) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&place, sizeof place) == 0 && listen(fd, 16) == 0) return fd;
    return -1;
}

static int open_output(int which) {
    const char *path = which ? FOLDER "err" : FOLDER "out";
    int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0) inotify_add_watch(watch, path, IN_MODIFY);
    return output[which] = fd;
}

/* One wait for whatever comes: a signal, output, a server. */
static void turn(int signals, const char *token, int milliseconds) {
    struct signalfd_siginfo signal_told;
    char events[4096];
    struct pollfd wait[] = {
        {.fd = signals, .events = POLLIN},
        {.fd = listener, .events = POLLIN},
        {.fd = watch, .events = POLLIN},
        {.fd = client, .events = POLLIN},
        {.fd = newcomer, .events = POLLIN},
        {.fd = is_behind(0) ? 1 : -1, .events = POLLOUT},
        {.fd = is_behind(1) ? 2 : -1, .events = POLLOUT},
        {.fd = is_to_begin && state == WAITING ? resolver : -1, .events = POLLIN},
    };
    poll(wait, 8, milliseconds);
    while (read(signals, &signal_told, sizeof signal_told) == sizeof signal_told)
        if (signal_told.ssi_signo == SIGTERM) ask();
    reap();
    while (read(watch, events, sizeof events) > 0) continue;
    if (client >= 0 && wait[3].revents) listen_to_client();
    if (newcomer >= 0 && wait[4].revents) greet(token);
    if (wait[1].revents) welcome();
}

int main(int count, char **arguments) {
    sigset_t every;
    char token[256];
    int signals;
    long long until = 0;
    if (count < 4 || getpid() != 1) return 2; /* elsewhere it would kill all processes of its user */
    prctl(PR_SET_DUMPABLE, 0);
    sigfillset(&every);
    sigprocmask(SIG_SETMASK, &every, NULL);
    signals = signalfd(-1, &every, SFD_CLOEXEC | SFD_NONBLOCK);
    watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    record = open(RECORD, O_WRONLY | O_APPEND | O_CLOEXEC);
    listener = open_listener(arguments[1]);
    snprintf(token, sizeof token, "%s", getenv(TOKEN) ? getenv(TOKEN) : "");
    unsetenv(TOKEN);
    read_names();
    if (signals < 0 || watch < 0 || listener < 0 || !*token || open_output(0) < 0 || open_output(1) < 0) {
        dprintf(2, "trainshed: the init of this pod cannot begin: %s\n", strerror(errno));
        return BROKEN;
    }
    fcntl(1, F_SETFL, O_NONBLOCK), fcntl(2, F_SETFL, O_NONBLOCK);
    words = arguments + 3;
    if (strcmp(words[0], "--begin") == 0) {
        is_to_begin = 1;
        named_since = now();
        words++;
    }
    if (words[0] && strcmp(words[0], "--hold") == 0) {
        holds = 1;
        words++;
    }
    if (!words[0]) return 2;
    while (!(state == WAITING && asked) && !(state == ENDED && until && now() > until)) {
        if (state == ENDED && !until) until = now() + atoll(arguments[2]) * 1000000000LL;
        int more = send_output(0) | send_output(1);
        if (!more) send_record();
        more |= show_output(0) | show_output(1);
        if (is_to_begin && state == WAITING && !asked) look_at_names();
        turn(signals, token, more ? 0 : state == ENDED ? 1000 : is_to_begin && state == WAITING ? 50 : -1);
    }
    return state == ENDED ? shell_status() : BROKEN;
}
