/* The services `processes` and `keep` of pod_init.c, by which the server learns what programs do.
 *
 *     TOKEN processes                    a frame for each process: p, the length in four bytes, and so many bytes:
 *                                        PID, 1 where it is a Python interpreter or 0, then after a zero byte each
 *                                        its `stat`, its `wchan` and its `cmdline`, as /proc has them
 *     TOKEN keep NAME SIZE               so many bytes follow; they become a program in the run's folder, whole or
 *                                        not at all. The answer is "kept"
 *
 * Nothing here stops or changes a process.
 */
#define MOST_WORDS_OF_PROCESS 4096

/* By its file, or by the library it has loaded. */
static int is_python(int pid) {
    char path[64], place[4096], *name;
    snprintf(path, sizeof path, "/proc/%d/exe", pid);
    ssize_t length = readlink(path, place, sizeof place - 1);
    if (length <= 0) return 0;
    place[length] = 0;
    name = strrchr(place, '/');
    if (strncmp(name ? name + 1 : place, "python", 6) == 0) return 1;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "re");
    int is_loaded = 0;
    while (maps && !is_loaded && fgets(place, sizeof place, maps)) is_loaded = strstr(place, "/libpython3") != NULL;
    if (maps) fclose(maps);
    return is_loaded;
}

static void serve_processes(int connection, const char *rest) {
    static char frame[5 + 32 + 3 * MOST_WORDS_OF_PROCESS];
    static const char *const files[] = {"stat", "wchan", "cmdline"};
    struct process process;
    DIR *folder = opendir("/proc");
    (void)rest;
    while (next_process(folder, &process)) {
        size_t size = 5 + (size_t)snprintf(frame + 5, 32, "%d %d", process.pid, is_python(process.pid));
        for (size_t i = 0; i < 3; i++) {
            ssize_t got = slurp_of(process.pid, files[i], frame + size + 1, MOST_WORDS_OF_PROCESS);
            frame[size] = 0;
            size += 1 + (got > 0 ? (size_t)got : 0);
        }
        frame[0] = 'p';
        for (int i = 0; i < 4; i++) frame[1 + i] = (char)((size - 5) >> (24 - 8 * i));
        for (size_t done = 0; done < size;) {
            ssize_t went = send(connection, frame + done, size - done, MSG_NOSIGNAL);
            if (went <= 0) return;
            done += (size_t)went;
        }
    }
}

static void serve_keep(int connection, const char *rest) {
    char name[64], path[160], draft[200], piece[CHUNK];
    long long missing;
    if (sscanf(rest, "%63[a-zA-Z0-9_-] %lld", name, &missing) != 2) return;
    snprintf(path, sizeof path, "%s%s", FOLDER, name);
    snprintf(draft, sizeof draft, "%s.%d", path, getpid());
    int fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0500);
    while (fd >= 0 && missing > 0) {
        ssize_t got = recv(connection, piece, missing < CHUNK ? (size_t)missing : CHUNK, 0);
        if (got <= 0 || write(fd, piece, (size_t)got) != got) break;
        missing -= got;
    }
    if (fd >= 0) close(fd);
    if (fd < 0 || missing || rename(draft, path) != 0)
        unlink(draft);
    else
        dprintf(connection, "kept\n");
}
