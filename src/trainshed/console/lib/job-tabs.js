// The tabs of a job's page, each pages/job-NAME.js, with the keys that lead to them.

export const JOB_TABS = [
  { name: "overview", title: "Overview", key: "g o" },
  { name: "logs", title: "Logs", key: "g l" },
  { name: "graphs", title: "Graphs", key: "g h" },
  { name: "shell", title: "Shell", key: "g s" },
  { name: "stacks", title: "Stacks", key: "g t" },
  { name: "code", title: "Code", key: "g c" },
  { name: "spec", title: "Spec", key: "g y" },
];
