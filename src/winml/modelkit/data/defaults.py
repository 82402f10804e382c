"""THE table of default data: a data set of the hub per task, where one is there as plain files.

A revision is a commit where one is known for certain; `main` is resolved when it is fetched, and the result names the
commit. Digests are of the files; data that is not what it was is an error.
"""

from __future__ import annotations

from dataclasses import field, replace

from winml.modelkit.core.config import HUB, DataSection
from winml.modelkit.core.dataclass import dataclass
from winml.modelkit.core.errors import DataError
from winml.modelkit.data import hub
from winml.modelkit.store import digest

MAIN = "main"


@dataclass(frozen=True)
class DefaultData:
    """A data set of the hub."""

    repo: str
    files: dict[str, str | None]
    """The file that is read, then those it needs beside it; with the SHA-256 of each where that is known."""
    revision: str
    licence: str
    columns: dict[str, str] = field(default_factory=dict)


_PAGE = "see its page on the hub"
_CIFAR10 = DefaultData(
    "uoft-cs/cifar10",
    {"plain_text/test-00000-of-00001.parquet": "841389e6f2d64f28bf17310e430aebac20ec3ba611a3c5e231dc93c645ce84de"},
    "0b2714987fa478483af9968de7c934580d0bb9a2",
    _PAGE,
    {"image": "img", "label": "label"},
)

DEFAULTS: dict[str, DefaultData] = {
    "text-classification": DefaultData(
        "SetFit/sst2",
        {"dev.jsonl": "573c3ed18d96aa0a79a6e5980a544b80543317a319f18bd4f1660c16b2f6b939"},
        MAIN,
        _PAGE,
        {"text": "text", "label": "label"},
    ),
    "zero-shot-classification": DefaultData(
        "SetFit/ag_news",
        {"test.jsonl": "68290dee715edcb5a28ff1f3fc933ea7649fb0f01263af94411cfec255c55284"},
        "ca5ba619eb034211db5f70932b6702efd21e7c73",
        _PAGE,
        {"text": "text", "label": "label_text"},
    ),
    "retrieval": DefaultData(
        "mteb/scifact",
        {
            "corpus.jsonl": "f0d32db0d156b526d75921ed7a76f2cb912902631c87248c5c97c617bad0b60c",
            "queries.jsonl": "9db7df096f7414435d52bafcbacf814c30cea50eb565c1e8fa6d11440759bba8",
            "qrels/test.tsv": "0864bb985e0ca2367ba217977e72004d549054b2b06666ed9d4825ac7c21284c",
        },
        "cf10ab6856b15b0e670ef8ae5dae4e266c12d035",
        "CC BY 4.0 and ODC-By 1.0",
    ),
    "fill-mask": DefaultData("roneneldan/TinyStories", {"TinyStories-valid.txt": None}, MAIN, _PAGE, {"text": "text"}),
    "time-series-forecasting": DefaultData(
        "pkr7098/time-series-forecasting-datasets",
        {"ETTh1.csv": None},
        MAIN,
        _PAGE,
    ),
    "image-classification": _CIFAR10,
    "zero-shot-image-classification": _CIFAR10,
    "image-feature-extraction": _CIFAR10,
    "question-answering": DefaultData(
        "rajpurkar/squad",
        {
            "plain_text/validation-00000-of-00001.parquet": (
                "8c6646d36bd5a95061e076788cf3161d11f6f3e7d625dac7a83bbed0a49f69f7"
            )
        },
        "7b6d24c440a36b6815f21b70d25016731768db1f",
        "CC BY-SA 4.0",
        {"text": "question", "text_pair": "context", "label": "answers"},
    ),
    "token-classification": DefaultData(
        "lhoestq/conll2003",
        {"data/test-00000-of-00001.parquet": None},
        MAIN,
        _PAGE,
        {"words": "tokens", "label": "ner_tags"},
    ),
    "sentence-similarity": DefaultData(
        "mteb/stsbenchmark-sts",
        {"test.jsonl.gz": None},
        "b0fddb56ed78048fa8b90373c8a3cfc37b684831",
        _PAGE,
        {"text": "sentence1", "text_pair": "sentence2", "label": "score"},
    ),
    "reranking": DefaultData(
        "mteb/stackoverflowdupquestions-reranking",
        {"test.jsonl.gz": None},
        "e185fbe320c72810689fc5848eb6114e1ef5ec69",
        _PAGE,
        {"query": "query", "positive": "positive", "negative": "negative"},
    ),
    "multiple-choice": DefaultData(
        "Rowan/hellaswag",
        {"data/validation-00000-of-00001.parquet": "899813071e1e95efafec90f856e1987d2150fa4d020fc005df6962c259f660cd"},
        "218ec52e09a7e7462a5400043bb9a69a41d06b76",
        "MIT",
        {"text": "ctx", "choices": "endings", "label": "label"},
    ),
    "visual-question-answering": DefaultData(
        "flaviagiammarino/vqa-rad",
        {
            "data/test-00000-of-00001-e5bc3d208bb4deeb.parquet": (
                "eb520bdab1116dd4f420120da19049d2315389fa126d031f65ec42e153264ea7"
            )
        },
        "bcf91e7654fb9d51c8ab6a5b82cacf3fafd2fae9",
        _PAGE,
        {"image": "image", "query": "question", "label": "answer"},
    ),
    "automatic-speech-recognition": DefaultData(
        "google/fleurs",
        {"parquet-data/en_us/test-00000-of-00001.parquet": None},
        "70bb2e84b976b7e960aa89f1c648e09c59f894dd",
        "CC BY 4.0",
        {"audio": "audio", "label": "transcription"},
    ),
    "perplexity": DefaultData(
        "Salesforce/wikitext",
        {
            "wikitext-2-raw-v1/test-00000-of-00001.parquet": (
                "5f1bea067869d04849c0f975a2b29c4ff47d867f484f5010ea5e861eab246d91"
            )
        },
        "b08601e04326c79dfdd32d625aee71d232d685c3",
        _PAGE,
        {"text": "text"},
    ),
    "text-generation": DefaultData(
        "EleutherAI/arithmetic",
        {"data/two_digit_addition.jsonl": None},
        "cf5ec4512aaa47cdebf02ca032b7af870528c272",
        _PAGE,
        {"prompt": "context", "label": "completion"},
    ),
    "translation": DefaultData(
        "Helsinki-NLP/opus-100",
        {"de-en/test-00000-of-00001.parquet": "05913515e9dc8c11bc03570bd00ae5b551c32b03e07901369f91372ad63a3f11"},
        "805090dc28bf78897da9641cdf08b61287580df9",
        _PAGE,
        {"prompt": "translation.en", "label": "translation.de"},
    ),
    "summarization": DefaultData(
        "abisee/cnn_dailymail",
        {"3.0.0/test-00000-of-00001.parquet": "04e322d2634a96dba76bf9a6294fbbe48e0b36abeae43f13d86ba2c3bebffe4e"},
        "96df5e686bee6baa90b8bee7c28b81fa3fa6223d",
        "Apache 2.0",
        {"prompt": "article", "label": "highlights"},
    ),
}


def taken_default(section: DataSection, task: str, source: str) -> DataSection:
    """The section with the default data that a run of the task took: the same commit, whatever `main` is by now."""
    return replace(section, source=source, columns={**DEFAULTS[task].columns, **section.columns})


def find_default(section: DataSection, task: str) -> tuple[DataSection, str]:
    """The section with the default data of a task in place of its name, fetched and checked, and a note."""
    row = DEFAULTS.get(task)
    if row is None:
        raise DataError(
            f"there is no default data for task `{task}`",
            hint=f"there is for {', '.join(DEFAULTS)}; docs/data.md shows how files for the others look",
        )
    first, commit = next(iter(row.files)), row.revision
    for name, known in row.files.items():
        path = hub.data_file(f"{HUB}{row.repo}/{name}@{row.revision}")
        commit = hub.commit_of(path) or row.revision
        if known is not None and digest.of_file(path).removeprefix("sha256:") != known:
            raise DataError(
                f"`{name}` of the data set `{row.repo}` is not the file that it was: its SHA-256 is not {known}",
                hint=f"look at it and name it yourself: `--data {HUB}{row.repo}/{first}`",
            )
    source = f"{HUB}{row.repo}/{first}@{commit}"
    note = f"the default data of task `{task}` is {source}; licence: {row.licence}"
    return taken_default(section, task, source), note
