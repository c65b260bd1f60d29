/* The init of every pod: PID 1, which starts the program when the server says so and holds its output and its end.
 *
 *     /.trainshed/bin/init PORT HOLD_SECONDS GRACE_SECONDS [--begin] [--hold] [--tunnel PORT]... [--apart]
 *                          PROGRAM [ARG...]
 *     /.trainshed/bin/remote ...         where replicas start programs in others: see machine/remote.h
 *
 * The program's output goes to files in /.trainshed/run, which live as long as the pod. What happened goes into the
 * termination message, which Kubernetes keeps with the pod, a line each:
 *
 *     init BOOT NANOSECONDS              the program was begun
 *     unheard PORT                       it may not listen at a port that was to lead to the server
 *     exposed                            its program did not begin: it is not kept apart from the network
 *     unstarted ERRNO                    its program cannot be run
 *     unasked                            the program has ended, and nobody had asked it to
 *     unchanged                          nothing below /gcs has changed since: no server needs to fetch it
 *     oom COUNT                          processes the kernel killed here for want of memory
 *     refused COUNT                      processes and threads the kernel refused here at their limit
 *     held exit CODE NANOSECONDS         or: held signal NUMBER NANOSECONDS
 *     exit CODE NANOSECONDS              or: signal NUMBER NANOSECONDS
 *
 * The server connects to PORT, as often as it likes, and says first TRAINSHED_POD_TOKEN and what the connection is for:
 *
 *     TOKEN output OFFSET OFFSET         how much of the standard output and of the standard error it has already
 *     TOKEN tunnel                       it waits until a program connects to a port of --tunnel (pod_tunnel.h)
 *     TOKEN SERVICE ...                  one of `services`, each connection served by a child of the init:
 *                                        files (pod_files.h)
 *
 * On the connection for output it says then, a line each: go (begin the program), host ADDRESS NAME (it counts with the
 * next go or hosts, pod_hosts.h), hosts, term (ask all to end, once), kill (kill all), done (I have all). It gets
 * frames: a letter, the length in four bytes, and so many bytes: o and e, output; r, the record so far. The frame with
 * the end comes after all output. Of several servers the last one to connect is heard. For `kubectl logs` the output is
 * also copied to the init's own, as fast as that is read.
 * A child that serves dies with the program, as all processes here do: the server connects again.
 *
 * Where TRAINSHED_POD_FOLDER is set the program begins in that folder, which is made where it is missing.
 * Where TRAINSHED_POD_LAYER is set the program finds first what was brought to the root `layer`.
 * Variables TRAINSHED_POD_TEXT_NUMBER are for Kubernetes, which puts them into others; the program has none of them.
 * TRAINSHED_POD_COMMON has further variables of the program: NAME=VALUE, with a byte 0x1e between two of them.
 * Where TRAINSHED_POD_NAMES has names, the program begins once the cluster's DNS knows each of them, or after a while.
 *
 * A variable TRAINSHED_DEFAULT_NAME is NAME to the program, unless the image has one of that name.
 *
 * With --begin the program begins at once, without the server's word.
 * With --hold the place of a program that fails without having been asked to end stays until it is asked.
 * With --apart the program begins only once the pod is kept apart from the network (pod_apart.h).
 * After the end the init waits for "done", for HOLD_SECONDS at most: nobody can read the output of a pod that is gone.
 * That holds also where Kubernetes ends the pod, which gives it that much more time than the program has: a program
 * that was asked by Kubernetes and has not ended after GRACE_SECONDS is killed.
 */
#define _GNU_SOURCE
#include "../machine/init.h"
#include "../machine/remote.h"
#include "../machine/address.h"
#include <poll.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

/* For all that waits: nobody sets this clock, as the one of records is set. */
static long long steady_now(void) { return clock_of(CLOCK_MONOTONIC); }

#include "pod_apart.h"
#include "pod_hosts.h"
#include "pod_tunnel.h"

#include "pod_files.h"

#ifndef FOLDER /* tests have others */
#define FOLDER "/.trainshed/run/"
#define RECORD "/dev/termination-log"
#endif
#ifndef RESOLVER /* tests have another */
#define RESOLVER "/etc/resolv.conf"
#define NAME_PORT 53
#define GIVE_UP 30000000000LL /* nanoseconds after which the program begins although names are not known */
#endif
#define IPV4_RECORD 1
#define IPV6_RECORD 28
#define TOKEN "TRAINSHED_POD_TOKEN"
#define NAMES "TRAINSHED_POD_NAMES"
#define TEXT "TRAINSHED_POD_TEXT_"
#define COMMON "TRAINSHED_POD_COMMON"
#define START "TRAINSHED_POD_FOLDER"
#define DEFAULT "TRAINSHED_DEFAULT_"
#define LAYER "TRAINSHED_POD_LAYER"
#define MOST_NAMES 64
#define ASK_AGAIN 100000000LL   /* nanoseconds between two questions for a name */
#define BROKEN 125 /* it cannot begin */
#define CHUNK 65536
#define NEWCOMERS 16

#define SERVER "trainshed" /* the name of a child that serves */
#include "pod_shell.h"
#include "pod_processes.h"
#include "pod_stats.h"
#include "pod_stacks.h"

enum { WAITING, RUNNING, HELD, ENDED };

static char text[2048]; /* the record */
static int state = WAITING, asked, holds, status, wants_apart;
static pid_t program;
static long long grace, kill_at; /* nanoseconds; when the program is killed, 0: never */
static char **words, *start;
static int record = -1, watch = -1, listener = -1, client = -1;
static int output[2]; /* for reading: standard output, standard error */
static long long sent[2], shown[2]; /* to the client; to the log that Kubernetes keeps */
static size_t told; /* bytes of the record that the client has been told */
static char line[512];
static size_t line_length;
static struct newcomer { /* a connection that has not said yet what it is for */
    int fd;
    char text[512];
    size_t length;
} newcomers[NEWCOMERS];
static const struct {
    const char *word;
    void (*serve)(int connection, const char *rest);
} services[] = {
    {"files", serve_files},
    {"shell", serve_shell},
    {"stats", serve_stats},
    {"processes", serve_processes},
    {"keep", serve_keep},
    {NULL, NULL},
};

static void note(const char *words_of_line) {
    size_t length = strlen(text);
    snprintf(text + length, sizeof text - length, "%s", words_of_line);
    if (record >= 0 && write(record, words_of_line, strlen(words_of_line)) < 0) record = -1;
}

/* The program */

static void tell_unstarted(int error) { dprintf(3, "%d", error); }

/* Go to the folder in which the program begins; where that cannot be, it says so itself. */
static void go_to_start(void) {
    for (char *slash = start ? strchr(start + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(start, 0777);
        *slash = '/';
    }
    if (start && mkdir(start, 0777) < 0 && errno != EEXIST) dprintf(2, "trainshed: no %s: %s\n", start, strerror(errno));
    if (start && chdir(start) < 0) {
        int error = errno;
        dprintf(2, "trainshed: it cannot begin in %s: %s\n", start, strerror(error));
        tell_unstarted(error);
        _exit(126);
    }
}

static void begin(void) {
    char entry[160], problem[64];
    int why[2];
    struct timespec pause = {0, 50000000L};
    if (state != WAITING) return;
    files_at_start = exchange.top < 0 ? 0 : look("gcs");
    name_start(entry, sizeof entry);
    note(entry);
    if (pipe2(why, O_CLOEXEC) < 0) why[0] = why[1] = -1;
    while ((program = fork()) < 0) nanosleep(&pause, NULL); /* no room for a process now: try again */
    if (program == 0) {
        int out = open(FOLDER "out", O_WRONLY | O_APPEND | O_CLOEXEC), err = open(FOLDER "err", O_WRONLY | O_APPEND | O_CLOEXEC);
        int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC), told_to = fcntl(why[1], F_DUPFD_CLOEXEC, 10);
        dup2(nothing, 0), dup2(out, 1), dup2(err, 2), dup3(told_to, 3, O_CLOEXEC);
        go_to_start();
        prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* where Yama forbids it, our py-spy may look into it still */
        become(words, tell_unstarted);
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

static void take_common(void) {
    char *list = getenv(COMMON) ? strdup(getenv(COMMON)) : NULL, *rest, *entry, *value;
    unsetenv(COMMON);
    for (entry = list ? strtok_r(list, "\x1e", &rest) : NULL; entry; entry = strtok_r(NULL, "\x1e", &rest)) {
        if (!(value = strchr(entry, '='))) continue;
        *value = 0;
        setenv(entry, value + 1, 1);
    }
    free(list);
}

/* Give the program the variables that are weaker than the image's own, and take texts away that others have in them. */
static void take_defaults(void) {
    extern char **environ;
    size_t length = strlen(DEFAULT);
    for (char **entry = environ; *entry;) {
        char name[256], *value = strchr(*entry, '=');
        int is_default = strncmp(*entry, DEFAULT, length) == 0, is_text = strncmp(*entry, TEXT, strlen(TEXT)) == 0;
        if ((!is_default && !is_text) || !value || (size_t)(value - *entry) >= sizeof name) {
            entry++;
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)(value - *entry), *entry);
        if (is_default) setenv(name + length, value + 1, 0);
        unsetenv(name);
        entry = environ; /* both may have moved it */
    }
}

/* The names of the others */

static char *names[MOST_NAMES];
static int named, known[MOST_NAMES], resolver = -1, is_to_begin;
static char likely; /* the kind of address that the others have if they are as the resolver; else they are asked again */
static long long asked_at, named_since;

static void read_names(void) {
    char config[4096], *place, *rest;
    struct address server;
    char *list = getenv(NAMES) ? strdup(getenv(NAMES)) : NULL;
    unsetenv(NAMES);
    if (!list || slurp(RESOLVER, config, sizeof config) <= 0) return;
    for (place = strtok_r(config, "\n", &rest); place; place = strtok_r(NULL, "\n", &rest)) {
        char address[64];
        if (sscanf(place, "nameserver %63s", address) == 1 && read_address(address, NAME_PORT, &server)) break;
    }
    if (!place) return;
    resolver = open_socket(&server, SOCK_DGRAM | SOCK_NONBLOCK);
    if (resolver < 0 || connect(resolver, &server.place.any, server.size) < 0) return;
    likely = server.place.any.sa_family == AF_INET6 ? IPV6_RECORD : IPV4_RECORD;
    for (place = strtok_r(list, " ", &rest); place && named < MOST_NAMES; place = strtok_r(NULL, " ", &rest))
        names[named++] = place;
}

/* Ask for the addresses of one kind of a name: its number is the number of the question. */
static void ask_for(int number, char kind) {
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
    memcpy(question + size, (char[]){0, 0, kind, 0, 1}, 5);
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
    int is_time = steady_now() - asked_at > ASK_AGAIN;
    for (int number = 0; number < named; number++) {
        if (known[number]) continue;
        missing++;
        if (is_time) ask_for(number, likely);
        if (is_time && asked_at) ask_for(number, likely == IPV4_RECORD ? IPV6_RECORD : IPV4_RECORD);
    }
    if (is_time) asked_at = steady_now();
    if (!missing || steady_now() - named_since > GIVE_UP) begin();
}

static void note_counts(void) {
    char entry[128];
    name_counts(entry, sizeof entry);
    note(entry);
}

static void note_end(const char *how) {
    char entry[128];
    name_end(entry, sizeof entry, how, status);
    note(entry);
}

static void give_up_exposed(void) {
    char entry[160];
    name_start(entry, sizeof entry);
    note(entry);
    note("exposed\n");
    status = BROKEN << 8;
    note_end("");
    state = ENDED;
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
        if (!asked) note("unasked\n");
        if (!has_written()) note("unchanged\n");
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
    if (strncmp(word, "host ", 5) == 0) take_host(word + 5);
    if (strcmp(word, "go") == 0 || strcmp(word, "hosts") == 0) write_hosts();
    if (strcmp(word, "go") == 0 && !is_to_begin) {
        is_to_begin = 1;
        named_since = steady_now();
    }
    if (strcmp(word, "term") == 0) ask();
    if (strcmp(word, "kill") == 0) {
        asked = 1;
        if (state == HELD) end();
        if (state == RUNNING) kill(-1, SIGKILL);
    }
    if (strcmp(word, "done") == 0 && state == ENDED) {
        while (show_output(0) | show_output(1)) continue;
        exit(shell_status(status));
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

/* In a child that serves: what is the init's own must not stay open because of it. */
static void leave(void) {
    prctl(PR_SET_NAME, SERVER);
    close(listener), close(watch);
    if (client >= 0) close(client);
    for (size_t i = 0; i < NEWCOMERS; i++)
        if (newcomers[i].fd >= 0) close(newcomers[i].fd);
}

/* A child answers on the connection until that ends. */
static void serve(int connection, const char *rest) {
    for (size_t i = 0; services[i].word; i++) {
        size_t length = strlen(services[i].word);
        if (strncmp(rest, services[i].word, length) != 0 || (rest[length] && rest[length] != ' ')) continue;
        if (fork() != 0) return; /* where there is no room for a process, the server connects again */
        leave();
        fcntl(connection, F_SETFL, 0);
        services[i].serve(connection, rest + length + (rest[length] == ' '));
        _exit(0);
    }
}

static void hear(int connection, const char *words_of_greeting, const char *token) {
    long long offsets[2];
    size_t length = strlen(token);
    if (strncmp(words_of_greeting, token, length) != 0 || words_of_greeting[length] != ' ') {
        close(connection);
    } else if (sscanf(words_of_greeting + length, " output %lld %lld", &offsets[0], &offsets[1]) == 2) {
        hang_up();
        client = connection;
        sent[0] = offsets[0], sent[1] = offsets[1];
        told = (size_t)-1;
        if (state != ENDED) send_record(); /* the end comes after the output */
    } else if (strcmp(words_of_greeting + length, " tunnel") == 0) {
        park(connection);
    } else {
        serve(connection, words_of_greeting + length + 1);
        close(connection);
    }
}

/* Read the first line byte by byte, so that what follows stays for whoever answers. */
static void greet(struct newcomer *newcomer, const char *token) {
    char byte;
    ssize_t size;
    int connection = newcomer->fd;
    while ((size = recv(connection, &byte, 1, MSG_DONTWAIT)) == 1 && byte != '\n' &&
           newcomer->length < sizeof newcomer->text - 1)
        newcomer->text[newcomer->length++] = byte;
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    newcomer->fd = -1;
    newcomer->text[newcomer->length] = 0;
    if (size == 1 && byte == '\n')
        hear(connection, newcomer->text, token);
    else
        close(connection);
}

/* Where too many say nothing, the one who came first gives way. */
static void welcome(void) {
    static size_t next;
    int yes = 1, fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    struct newcomer *newcomer = &newcomers[next++ % NEWCOMERS];
    if (newcomer->fd >= 0) close(newcomer->fd);
    newcomer->fd = fd;
    newcomer->length = 0;
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
    struct pollfd wait[7 + NEWCOMERS + TUNNEL_FDS] = {
        {.fd = signals, .events = POLLIN},
        {.fd = listener, .events = POLLIN},
        {.fd = watch, .events = POLLIN},
        {.fd = client, .events = POLLIN},
        {.fd = is_behind(0) ? 1 : -1, .events = POLLOUT},
        {.fd = is_behind(1) ? 2 : -1, .events = POLLOUT},
        {.fd = is_to_begin && state == WAITING ? resolver : -1, .events = POLLIN},
    };
    for (size_t i = 0; i < NEWCOMERS; i++) wait[7 + i] = (struct pollfd){.fd = newcomers[i].fd, .events = POLLIN};
    tunnel_wants(wait + 7 + NEWCOMERS);
    poll(wait, 7 + NEWCOMERS + TUNNEL_FDS, milliseconds < 0 ? tunnel_patience() : milliseconds);
    while (read(signals, &signal_told, sizeof signal_told) == sizeof signal_told)
        if (signal_told.ssi_signo == SIGTERM) {
            ask();
            if (!kill_at) kill_at = steady_now() + grace;
        }
    reap();
    tunnel_turn(wait + 7 + NEWCOMERS);
    while (read(watch, events, sizeof events) > 0) continue;
    if (client >= 0 && wait[3].revents) listen_to_client();
    for (size_t i = 0; i < NEWCOMERS; i++)
        if (newcomers[i].fd >= 0 && wait[7 + i].revents) greet(&newcomers[i], token);
    if (wait[1].revents) welcome();
}

int main(int count, char **arguments) {
    sigset_t every;
    char token[256];
    int signals;
    long long until = 0;
    if (is_remote(arguments[0])) return remote_main(count, arguments);
    if (count == 3 && strcmp(arguments[1], "--touch") == 0) return touch(arguments[2]);
    if (count < 5 || getpid() != 1) return 2; /* elsewhere it would kill all processes of its user */
    prctl(PR_SET_DUMPABLE, 0);
    sigfillset(&every);
    sigprocmask(SIG_SETMASK, &every, NULL);
    signals = signalfd(-1, &every, SFD_CLOEXEC | SFD_NONBLOCK);
    watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    for (size_t i = 0; i < NEWCOMERS; i++) newcomers[i].fd = -1;
    for (size_t i = 0; i < TUNNELS; i++) tunnels[i].fd = tunnels[i].caller = -1;
    record = open(RECORD, O_WRONLY | O_APPEND | O_CLOEXEC);
    listener = listen_at("::", atoi(arguments[1]), 16);
    snprintf(token, sizeof token, "%s", getenv(TOKEN) ? getenv(TOKEN) : "");
    unsetenv(TOKEN);
    start = getenv(START) ? strdup(getenv(START)) : NULL;
    unsetenv(START);
    if (getenv(LAYER)) use_layer();
    unsetenv(LAYER);
    make_files();
    read_names();
    take_common();
    take_defaults();
    if (signals < 0 || watch < 0 || listener < 0 || !*token || open_output(0) < 0 || open_output(1) < 0) {
        dprintf(2, "trainshed: the init of this pod cannot begin: %s\n", strerror(errno));
        return BROKEN;
    }
    fcntl(1, F_SETFL, O_NONBLOCK), fcntl(2, F_SETFL, O_NONBLOCK);
    grace = atoll(arguments[3]) * 1000000000LL;
    words = arguments + 4;
    if (strcmp(words[0], "--begin") == 0) {
        is_to_begin = 1;
        named_since = steady_now();
        words++;
    }
    if (words[0] && strcmp(words[0], "--hold") == 0) {
        holds = 1;
        words++;
    }
    for (; words[0] && words[1] && strcmp(words[0], "--tunnel") == 0; words += 2) {
        char entry[64];
        if (open_door(atoi(words[1]))) continue;
        snprintf(entry, sizeof entry, "unheard %d\n", atoi(words[1]));
        note(entry);
    }
    if (words[0] && strcmp(words[0], "--apart") == 0) {
        wants_apart = 1;
        words++;
    }
    if (!words[0]) return 2;
    while (!(state == WAITING && asked) && !(state == ENDED && until && steady_now() > until)) {
        if (state == ENDED && !until) until = steady_now() + atoll(arguments[2]) * 1000000000LL;
        int more = send_output(0) | send_output(1);
        if (!more) send_record();
        more |= show_output(0) | show_output(1);
        int apart = is_to_begin && wants_apart && state == WAITING ? look_apart() : 1;
        if (apart < 0) give_up_exposed();
        if (is_to_begin && state == WAITING && !asked && apart) look_at_names();
        int is_watched = state == ENDED || (state == RUNNING && kill_at);
        if (state == RUNNING && kill_at && steady_now() > kill_at) kill(-1, SIGKILL);
        turn(signals, token, more ? 0 : is_watched ? 1000 : is_to_begin && state == WAITING ? 50 : -1);
    }
    return state == ENDED ? shell_status(status) : BROKEN;
}
