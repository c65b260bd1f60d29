/* The service `shell` of pod_init.c: a program beside the run's own, on a terminal or with pipes.
 *
 *     TOKEN shell ROWS COLUMNS           on a terminal of that size
 *     TOKEN shell                        with pipes, so bytes pass unchanged
 *
 * Both sides speak in frames: a letter, the length in four bytes, and so many bytes. The server says first c, the words
 * of the command, each with a zero byte at its end (none: the best shell there is); then i, input; f, the end of input,
 * without a terminal; s, "ROWS COLUMNS"; h, hang up. It gets o, output; x, the exit code, after all output.
 * When the program ends, the server hangs up or the connection ends, nothing that was started here stays: orphans come
 * to this process, which kills them. What the server does not read waits, and the program with it.
 */
#include <dirent.h>
#include <sys/ioctl.h>
#include <termios.h>

#define SHELL_FRAME (256 << 10) /* bytes of a frame at most */
#define SHELL_PIECE 16384
#define HANGING_UP 300000000LL /* nanoseconds for a program to end by itself when the server hangs up */

static char *start; /* the folder in which the run's program began; none: the image's */
static struct {
    int connection, signals, in, out; /* in: what the program reads; out: what it prints; the same on a terminal */
    int is_terminal, is_over, status;
    pid_t program;
    char head[5];
    size_t head_length;
    char *body; /* of the frame that comes in */
    size_t size, length, written; /* of it: its size, what is here, what the program has of it */
    char reply[5 + SHELL_PIECE]; /* the frame that goes out */
    size_t reply_size, reply_sent;
} shell;

static size_t frame_size(const char *head) {
    const unsigned char *byte = (const unsigned char *)head;
    return (size_t)byte[1] << 24 | (size_t)byte[2] << 16 | (size_t)byte[3] << 8 | byte[4];
}

static void fill_reply(char letter, size_t size) {
    shell.reply[0] = letter;
    for (int i = 0; i < 4; i++) shell.reply[1 + i] = (char)(size >> (24 - 8 * i));
    shell.reply_size = 5 + size;
    shell.reply_sent = 0;
}

/* Send what there is of the reply, now or when it can be sent; whether the connection is still there. */
static int send_reply(int flags) {
    while (shell.reply_sent < shell.reply_size) {
        ssize_t done = send(shell.connection, shell.reply + shell.reply_sent, shell.reply_size - shell.reply_sent,
                            MSG_NOSIGNAL | flags);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done < 0 && errno == EAGAIN;
        shell.reply_sent += (size_t)done;
    }
    shell.reply_size = shell.reply_sent = 0;
    return 1;
}

static void resize_terminal(const char *words_of_size) {
    struct winsize size = {0};
    if (shell.is_terminal && sscanf(words_of_size, "%hu %hu", &size.ws_row, &size.ws_col) == 2)
        ioctl(shell.in, TIOCSWINSZ, &size);
}

/* The program */

static int is_on_path(const char *name) {
    char path[4096], place[4200], *rest;
    snprintf(path, sizeof path, "%s", getenv("PATH") ? getenv("PATH") : PATH);
    for (char *folder = strtok_r(path, ":", &rest); folder; folder = strtok_r(NULL, ":", &rest)) {
        snprintf(place, sizeof place, "%s/%s", folder, name);
        if (access(place, X_OK) == 0) return 1;
    }
    return 0;
}

static void tell_nobody(int error) { (void)error; }

/* Where memory runs out, the kernel is to take this and not the run's own program. */
static void give_way(void) {
    prctl(PR_SET_DUMPABLE, 1); /* else the file is not ours */
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) dprintf(fd, "1000"), close(fd);
}

static void become_shell(char **command) {
    char *best[] = {is_on_path("bash") ? "bash" : "sh", NULL};
    give_way();
    if (start && chdir(start) < 0) dprintf(2, "trainshed: no %s: %s\r\n", start, strerror(errno));
    if (shell.is_terminal) setenv("TERM", "xterm-256color", 1);
    if (!command[0] && !is_on_path(best[0])) {
        dprintf(2, "trainshed: this image has no shell, neither bash nor sh; a program that is in it can be run:\r\n"
                   "  trainshed shell JOB -- PROGRAM\r\n");
        _exit(127);
    }
    become(command[0] ? command : best, tell_nobody);
}

/* What the program gets as its input and its output; our ends go to `shell`. */
static int open_ends(int theirs[2]) {
    int in[2], out[2], number, unlocked = 0;
    char name[64];
    if (!shell.is_terminal) {
        if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0) return 0;
        theirs[0] = in[0], shell.in = in[1], shell.out = out[0], theirs[1] = out[1];
    } else {
        shell.in = shell.out = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (ioctl(shell.in, TIOCSPTLCK, &unlocked) < 0 || ioctl(shell.in, TIOCGPTN, &number) < 0) return 0;
        snprintf(name, sizeof name, "/dev/pts/%d", number);
        theirs[0] = theirs[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (theirs[0] < 0) return 0;
    }
    fcntl(shell.in, F_SETFL, O_NONBLOCK), fcntl(shell.out, F_SETFL, O_NONBLOCK);
    return 1;
}

static int start_program(char **command, const char *words_of_size) {
    int theirs[2];
    if (!open_ends(theirs)) return 0;
    resize_terminal(words_of_size);
    shell.program = fork();
    if (shell.program == 0) {
        setsid();
        if (shell.is_terminal) ioctl(theirs[0], TIOCSCTTY, 0);
        dup2(theirs[0], 0), dup2(theirs[1], 1), dup2(theirs[1], 2);
        become_shell(command);
    }
    close(theirs[0]);
    if (theirs[1] != theirs[0]) close(theirs[1]);
    return shell.program > 0;
}

/* Wait for what has ended; whether any child is left. */
static int reap_family(void) {
    int how;
    pid_t gone;
    while ((gone = waitpid(-1, &how, WNOHANG)) > 0)
        if (gone == shell.program) shell.status = how, shell.is_over = 1;
    return gone == 0;
}

/* Kill the children of this process until none is left: theirs come to it as they lose their parents. */
static void end_family(void) {
    struct timespec pause = {0, 5000000L};
    while (reap_family()) {
        DIR *folder = opendir("/proc");
        kill(-shell.program, SIGKILL);
        for (struct dirent *entry; folder && (entry = readdir(folder));) {
            char path[300], content[512], *rest;
            int parent;
            snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
            if (atoi(entry->d_name) > 1 && slurp(path, content, sizeof content) > 0 && (rest = strrchr(content, ')')) &&
                sscanf(rest, ") %*c %d", &parent) == 1 && parent == getpid())
                kill(atoi(entry->d_name), SIGKILL);
        }
        if (folder) closedir(folder);
        nanosleep(&pause, NULL);
    }
}

static void hang_up_program(void) {
    struct timespec pause = {0, 5000000L};
    long long until = steady_now() + HANGING_UP;
    close(shell.in); /* a terminal tells its session so */
    if (shell.out != shell.in) close(shell.out);
    shell.in = shell.out = -1;
    kill(-shell.program, SIGHUP);
    while (!shell.is_over && reap_family() && steady_now() < until) nanosleep(&pause, NULL);
}

/* The frames of the server */

/* Take what has come of a frame; 1: it is whole, 0: not yet, -1: the connection has ended. */
static int take_frame(int flags) {
    for (;;) {
        int is_head = shell.head_length < sizeof shell.head;
        char *into = is_head ? shell.head + shell.head_length : shell.body + shell.length;
        size_t missing = is_head ? sizeof shell.head - shell.head_length : shell.size - shell.length;
        if (!is_head && !missing) return 1;
        ssize_t got = recv(shell.connection, into, missing, flags);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got < 0 && errno == EAGAIN ? 0 : -1;
        if (!is_head) {
            shell.length += (size_t)got;
        } else if ((shell.head_length += (size_t)got) == sizeof shell.head) {
            shell.size = frame_size(shell.head);
            shell.length = shell.written = 0;
            free(shell.body);
            if (shell.size > SHELL_FRAME || !(shell.body = malloc(shell.size + 1))) return -1;
            shell.body[shell.size] = 0;
        }
    }
}

/* Do what a whole frame says, or the rest of it; whether the server is still there. */
static int obey_frame(void) {
    char letter = shell.head[0];
    if (letter == 'h') return 0;
    if (letter == 's') resize_terminal(shell.body);
    if (letter == 'f' && !shell.is_terminal && shell.in >= 0) close(shell.in), shell.in = -1;
    while (letter == 'i' && shell.in >= 0 && shell.written < shell.size) {
        ssize_t done = write(shell.in, shell.body + shell.written, shell.size - shell.written);
        if (done < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
        if (done <= 0) break; /* it reads no more */
        shell.written += (size_t)done;
    }
    shell.head_length = 0;
    return 1;
}

static int has_frame(void) { return shell.head_length == sizeof shell.head && shell.length == shell.size; }

/* Put the next piece of output into the reply; whether there was one. */
static int read_output(void) {
    errno = 0;
    ssize_t got = shell.out < 0 ? 0 : read(shell.out, shell.reply + 5, SHELL_PIECE);
    if (got > 0) fill_reply('o', (size_t)got);
    return got > 0;
}

/* Pass on what comes until the program or the connection ends; whether the server is still there. */
static int relay(void) {
    struct signalfd_siginfo told_signal;
    int has_output = 1; /* its end may come before that of the program */
    while (!shell.is_over) {
        int waits_for_input = has_frame();
        struct pollfd wait[] = {
            {.fd = shell.signals, .events = POLLIN},
            {.fd = shell.connection,
             .events = (short)(POLLRDHUP | (waits_for_input ? 0 : POLLIN) | (shell.reply_size ? POLLOUT : 0))},
            {.fd = shell.reply_size || !has_output ? -1 : shell.out, .events = POLLIN},
            {.fd = waits_for_input ? shell.in : -1, .events = POLLOUT},
        };
        poll(wait, 4, -1);
        while (read(shell.signals, &told_signal, sizeof told_signal) > 0) continue;
        reap_family();
        if (!has_frame() && take_frame(MSG_DONTWAIT) < 0) return 0;
        if (has_frame() && !obey_frame()) return 0;
        if (waits_for_input && wait[1].revents & (POLLRDHUP | POLLHUP | POLLERR)) return 0;
        if (wait[2].revents && !shell.reply_size) has_output = read_output() || errno == EAGAIN;
        if (shell.reply_size && !send_reply(MSG_DONTWAIT)) return 0;
    }
    return 1;
}

static char **words_of_frame(void) {
    size_t count = 0, next = 0;
    for (size_t i = 0; i < shell.size; i++) count += !shell.body[i];
    char **command = calloc(count + 1, sizeof *command);
    for (char *word = shell.body; command && next < count; word += strlen(word) + 1) command[next++] = word;
    return command;
}

static void serve_shell(int connection, const char *rest) {
    sigset_t children;
    int size = 1 << 18;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    shell.connection = connection;
    shell.is_terminal = *rest != 0;
    shell.signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    setsockopt(connection, SOL_SOCKET, SO_SNDBUF, &size, sizeof size); /* what nobody reads stays with the program */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    while (!has_frame())
        if (take_frame(0) < 0) return;
    char **command = words_of_frame();
    shell.head_length = 0;
    if (shell.signals < 0 || !command || !start_program(command, rest)) {
        int length = snprintf(shell.reply + 5, 300, "trainshed: no program can be started: %s\r\n", strerror(errno));
        fill_reply('o', (size_t)length);
        shell.status = 126 << 8;
    } else {
        shell.body = NULL; /* the words are in it */
        int is_there = relay();
        if (!is_there) hang_up_program();
        end_family();
    }
    for (int more = 1; more; more = read_output())
        if (!send_reply(0)) return;
    fill_reply('x', (size_t)snprintf(shell.reply + 5, 16, "%d", shell_status(shell.status)));
    send_reply(0);
}
