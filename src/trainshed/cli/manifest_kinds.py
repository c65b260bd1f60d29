"""The kinds of Kubernetes' manifests that can be applied, by the words people have for them.

`find.py`, `synonyms.py` and the commands of the dialect use it. What a kind means is the server's business.
"""

KINDS = {
    "Pod": ("pods", "pod", "po"),
    "Job": ("jobs", "job"),
    "JobSet": ("jobsets", "jobset", "js"),
    "PyTorchJob": ("pytorchjobs", "pytorchjob"),
    "TFJob": ("tfjobs", "tfjob"),
    "MPIJob": ("mpijobs", "mpijob"),
    "TrainJob": ("trainjobs", "trainjob"),
    "ImageCache": ("imagecaches", "imagecache", "ic"),
    "Experiment": ("experiments", "experiment"),
}
NO_JOBS = ("ImageCache", "Experiment")  # the kinds that become something else


def kind_called(word: str) -> str:
    """The kind that is meant; "" where the word is none."""
    return next((kind for kind, words in KINDS.items() if word.lower() in words), "")


def job_called(text: str) -> tuple[str, str]:
    """Kind and name of `pytorchjob/digits`; two empty texts where that is no job of a manifest."""
    word, slash, name = text.partition("/")
    kind = kind_called(word) if slash and name and "/" not in name else ""
    return (kind, name) if kind and kind not in NO_JOBS else ("", "")
