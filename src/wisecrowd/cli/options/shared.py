"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from wisecrowd.cli.options.group import option

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Annotations: csv (also .gz), tsv, jsonl, parquet or a platform's export; several "
        "files, a glob, or - for standard input.",
        show_default=False,
    ),
]
Output = Annotated[
    str | None, option("-o --output FILE", "Output file (default: standard output).")
]
Truth = Annotated[str | None, option("--truth FILE", "True classes for scoring: task, label.")]
TruthColumns = Annotated[
    str | None, option("--truth-columns TASK,LABEL", "Column names of --truth.")
]
GoldColumns = Annotated[str | None, option("--gold-columns TASK,LABEL", "Column names of --gold.")]
Gold = Annotated[str | None, option("--gold FILE", "Known classes for the fit: task, label.")]
Method = Annotated[str, option("-m --method NAME", "Method; see `wisecrowd methods`.")]
Workers = Annotated[
    str | None, option("--workers-to FILE", "Output file for the quality of every worker.")
]
Soft = Annotated[bool, option("--soft", "Add columns p_CLASS with the probability of every class.")]
Ids = Annotated[str | None, option("--ids FILE", "Task of each row of the features.")]
TaskColumn = Annotated[
    str | None, option("--task COLUMN", "Column with task ids; several together: prompt,system.")
]
WorkerColumn = Annotated[
    str | None, option("--worker COLUMN", "Column with worker ids; several: judge,version.")
]
LabelColumn = Annotated[
    str | None, option("--label COLUMN", "Column with labels; in exports, the question.")
]
LeftColumn = Annotated[
    str | None, option("--left COLUMN", "Column with the left items of pairs; in exports, a field.")
]
RightColumn = Annotated[
    str | None, option("--right COLUMN", "Column with the right items of pairs.")
]
TimestampColumn = Annotated[
    str | None, option("--timestamp COLUMN", "Column with times, to find the last repeat.")
]
WeightColumn = Annotated[str | None, option("--weight COLUMN", "Column with row weights.")]
NoHeader = Annotated[
    bool, option("--no-header", "The file has no header; --columns names the columns.")
]
Columns = Annotated[
    str | None, option("--columns A,B,C", "Names of all columns, for a file without a header.")
]
Wide = Annotated[
    bool, option("--wide", "Wide table: one row per task, one column of labels per worker.")
]
WorkerColumns = Annotated[
    str | None, option("--worker-columns A,B,C", "Worker columns of a wide table.")
]
Format = Annotated[
    str,
    option(
        "--format FORMAT",
        "csv, tsv, jsonl, parquet, wide, a platform such as label-studio, or auto (detect).",
    ),
]
Encoding = Annotated[str, option("--encoding NAME", "Encoding of text files, such as latin-1.")]
Classes = Annotated[
    str | None, option("--classes A,B,C", "All classes, including those without labels.")
]
Abstain = Annotated[
    list[str] | None, option("--abstain LABEL", "Label to treat as an abstention; repeatable.")
]
Duplicates = Annotated[
    str,
    option(
        "--duplicates auto|last|keep|error",
        "Repeated (task, worker) pairs: use the last, keep all, or stop with an error; auto: use "
        "the last, but stop if many have different labels.",
    ),
]
Kinds = Annotated[
    str | None,
    option(
        "--kinds human,model",
        "Kinds of workers to read, or all; by default, no models if humans labelled too.",
    ),
]
ExcludeWorkers = Annotated[
    list[str] | None,
    option("--exclude-workers GLOB", "Workers to omit, such as 'model:*'; repeatable."),
]
Accept = Annotated[
    str | None,
    option(
        "--accept NAME,...",
        "Content that is right although it looks like a misread file: one-worker, one-answer, "
        "worker-per-task (workers with one task each).",
    ),
]
DropAfter = Annotated[
    list[str] | None,
    option(
        "--drop-after WORKER=TIME", "Leave out the labels of a worker after a time; repeatable."
    ),
]
Type = Annotated[
    str | None,
    option(
        "--type TYPE",
        "Type of the labels: labels, ordered, numbers, pairs, rankings, same, sequences, sets, "
        "boxes, masks or texts; labels: every value is a class, even a number or a text.",
    ),
]
Scale = Annotated[
    str | None,
    option("--scale 1..5|A,B,C", "Ordered classes, the lowest first; implies --type ordered."),
]
Seen = Annotated[
    str | None,
    option("--seen FILE", "Who saw which image, also without a box: task, worker; of boxes."),
]
Parameters = Annotated[
    list[str] | None, option("-p --parameter NAME=VALUE", "Parameter of the method; repeatable.")
]
FailOn = Annotated[
    str | None,
    option(
        "--fail-on info|low|medium|high",
        "Exit with code 1 if a finding has this severity or a higher one.",
    ),
]
Json = Annotated[bool, option("--json", "Print one JSON object, or write it to -o FILE.json.")]
PrintJson = Annotated[bool, option("--json", "Print one JSON object.")]
Overwrite = Annotated[
    bool,
    option(
        "--overwrite", "Replace output files that wisecrowd did not write, or that were changed."
    ),
]
RawCsv = Annotated[
    bool,
    option(
        "--raw-csv",
        "Write ids unchanged to csv, even if a spreadsheet would read them as formulas.",
    ),
]
Pseudonymize = Annotated[
    str | None,
    option(
        "--pseudonymize KEY",
        "Replace worker ids by pseudonyms; KEY is a file with the secret, or env:NAME.",
    ),
]
Seed = Annotated[int | None, option("--seed N", "Random seed (default: 0).", min=0)]
Threads = Annotated[
    int | None,
    option(
        "--threads N", "Number of threads (default: all cores); does not change results.", min=1
    ),
]
Quiet = Annotated[bool, option("-q --quiet", "Print only the result and errors.")]
