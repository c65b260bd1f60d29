/* The processes of a pod, for the services of pod_init.c that look at them: all but the init and its services.
 *
 * The init lets nobody read its own memory, so neither it nor a child that serves can be looked into.
 */
#include <dirent.h>

struct process {
    int pid, parent, threads;
    char state;
    unsigned long long ticks; /* of CPU, its own and those of children it has waited for */
};

static ssize_t slurp_of(int pid, const char *name, char *into, size_t size) {
    char path[300];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    *into = 0;
    return slurp(path, into, size);
}

static int read_process(int pid, struct process *process) {
    char content[1024], *rest, *begin;
    unsigned long long times[4];
    if (slurp_of(pid, "stat", content, sizeof content) <= 0) return 0;
    begin = strchr(content, '('), rest = strrchr(content, ')'); /* its name may hold anything */
    if (!begin || !rest) return 0;
    int got = sscanf(rest, ") %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d %d",
                     &process->state, &process->parent, &times[0], &times[1], &times[2], &times[3], &process->threads);
    process->pid = pid;
    process->ticks = times[0] + times[1] + times[2] + times[3];
    *rest = 0;
    int is_served = process->parent == 1 && strcmp(begin + 1, SERVER) == 0;
    return got == 7 && pid != 1 && !is_served && process->parent != getpid();
}

/* The next process of a folder that was opened for /proc; 0 where there is no other. */
static int next_process(DIR *folder, struct process *process) {
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        int pid = atoi(entry->d_name);
        if (pid > 0 && read_process(pid, process)) return 1;
    }
    return 0;
}
