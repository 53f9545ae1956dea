"""A real Label Studio: the same judgements from its four exports, and predictions that it takes.

``python -m benchmarks.trust.label_studio_server`` starts ``label-studio`` if it is on the path; its
data are in a temporary folder. ``--url http://127.0.0.1:8080 --token …`` takes a server that runs
(the legacy token of an administrator). Two projects are made and removed again. Only the loopback
interface is used, with a limit on time and on requests.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import wisecrowd as wc
from wisecrowd.core.exceptions import DataError
from wisecrowd.io.tables import read_gold

TOKEN = "b" * 40  # of the administrator of a server that is started
STARTING, SECONDS, REQUESTS = 600, 600, 200  # the first start makes a data base
CONFIG = """<View>
<Text name="text" value="$text"/><Text name="left" value="$a"/><Text name="right" value="$b"/>
<Image name="img" value="$image"/>
<Choices name="sentiment" toName="text"><Choice value="Positive"/><Choice value="Negative"/>
<Choice value="Neutral"/></Choices>
<Choices name="topics" toName="text" choice="multiple"><Choice value="arts, crafts"/>
<Choice value="news"/><Choice value="sport"/></Choices>
<Rating name="quality" toName="text" maxRating="5"/><Number name="amount" toName="text"/>
<Taxonomy name="taxo" toName="text"><Choice value="Animal"><Choice value="Cat"/></Choice>
<Choice value="Plant"/></Taxonomy>
<Pairwise name="pair" toName="left,right"/>
<TextArea name="note" toName="text"/><DateTime name="when" toName="text" only="date"/>
<Labels name="ner" toName="text"><Label value="PER"/><Label value="ORG"/></Labels>
<RectangleLabels name="box" toName="img"><Label value="Car"/><Label value="Dog"/></RectangleLabels>
<Choices name="certain" toName="text" perRegion="true"><Choice value="sure"/>
<Choice value="unsure"/></Choices>
</View>"""
FORMATS = {"JSON": "json", "JSON_MIN": "min.json", "CSV": "csv", "TSV": "tsv"}
VOTE = ("-m", "majority-vote")
# What each question is about, the type to read it as, and the options of its aggregation.
QUESTIONS: dict[str, tuple[str, str | None, tuple[str, ...]]] = {
    "sentiment": ("text", None, VOTE), "topics": ("text", None, ()),
    "quality": ("text", None, VOTE), "amount": ("text", "labels", VOTE),
    "taxo": ("text", None, ()), "pair": ("left,right", "labels", VOTE),
    "ner": ("text", None, ()), "box": ("img", None, ()), "note": ("text", None, ()),
}  # fmt: skip
TOPICS = (["news"], ["sport", "news"], ["arts, crafts"], ["sport"])
PATHS = ([["Animal", "Cat"]], [["Plant"]], [["Animal"], ["Plant"]])


class Server:
    """Requests to one server, counted and bounded."""

    def __init__(self, url: str, token: str) -> None:
        if urllib.parse.urlsplit(url).hostname not in ("127.0.0.1", "localhost", "::1"):
            raise SystemExit(f"{url} is not on this machine.")
        self.url, self._token = url.rstrip("/"), token
        self.restart()

    def restart(self) -> None:
        """Count time and requests from now on."""
        self._end, self.n_requests = time.monotonic() + SECONDS, 0

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and content of the answer."""
        self.n_requests += 1
        if self.n_requests > REQUESTS or time.monotonic() > self._end:
            raise SystemExit("The limit on requests or on time is reached.")
        request = urllib.request.Request(
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Token {self._token}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, content = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, content = error.code, error.read()
        try:
            return status, json.loads(content) if content else None
        except ValueError:
            return status, content

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the content of an answer that must be a success."""
        status, content = self(method, path, body)
        if status >= 300:
            raise SystemExit(f"{method} {path}: {status} {str(content)[:300]}")
        return content


@contextmanager
def started(port: int) -> Iterator[Server]:
    """Start ``label-studio`` in a folder of its own, and end it afterwards."""
    program = shutil.which("label-studio")
    if program is None:
        raise SystemExit("label-studio is not on the path; install it, or give --url and --token.")
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true", "COLLECT_ANALYTICS": "false",
            "LABEL_STUDIO_BASE_DATA_DIR": folder,
            "SSRF_PROTECTION_ENABLED": "false",  # webhooks to loopback
        }  # fmt: skip
        command = [
            program, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port),
            "--data-dir", folder, "--username", "a@example.org", "--password", "secret123",
            "--user-token", TOKEN,
        ]  # fmt: skip
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen(
                command, env=os.environ | settings, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            yield _ready(Server(f"http://127.0.0.1:{port}", TOKEN), process)
        finally:
            process.terminate()
            process.wait(30)


def _ready(server: Server, process: subprocess.Popen[bytes]) -> Server:
    end = time.monotonic() + STARTING
    while time.monotonic() < end:
        if process.poll() is not None:
            raise SystemExit("label-studio ended before it answered.")
        server.restart()
        try:
            server("GET", "/api/version")
        except OSError:
            time.sleep(1)
        else:
            return server
    raise SystemExit(f"label-studio did not answer within {STARTING} seconds.")


def data_of(number: int) -> dict[str, Any]:
    """Return the data of a task."""
    text = f'Ada Lane met Bob Rowe, she said "no" ({number})'
    image = f"https://example.org/img/{number}.png"
    return {"text": text, "a": f"answer {number}", "b": f"other {number}", "source": "news",
            "image": image}  # fmt: skip


def result_of(task: int, worker: int) -> list[dict[str, Any]]:
    """Return what a worker says of a task; every answer depends on both."""
    mixed = (task * 7 + worker * 3) % 11

    def made(name: str, kind: str, value: dict[str, Any], to: str = "text") -> dict[str, Any]:
        return {"id": f"{name}{task}{worker}", "from_name": name, "to_name": to, "type": kind,
                "value": value}  # fmt: skip

    found = [
        made("sentiment", "choices", {"choices": [("Positive", "Negative", "Neutral")[mixed % 3]]}),
        made("topics", "choices", {"choices": TOPICS[mixed % 4]}),
        made("quality", "rating", {"rating": 1 + mixed % 5}),
        made("amount", "number", {"number": 10 + mixed / 2}),
        made("taxo", "taxonomy", {"taxonomy": PATHS[mixed % 3]}),
        made("pair", "pairwise", {"selected": ("left", "right")[mixed % 2]}, "left,right"),
        made("note", "textarea", {"text": ["fine", "second\nline"][: 1 + mixed % 2]}),
        made("when", "datetime", {"datetime": f"2026-02-{1 + mixed:02d}"}),
    ]
    for region in range((mixed + worker) % 3):
        place = {"start": 13 * region, "end": 13 * region + 8,
                 "text": ("Ada Lane", "Bob Rowe")[region]}  # fmt: skip
        one = {"id": f"r{task}{worker}{region}", "to_name": "text"}
        found += [
            {**one, "from_name": "ner", "type": "labels", "value": {**place, "labels": ["PER"]}},
            {**one, "from_name": "certain", "type": "choices",
             "value": {**place, "choices": [("sure", "unsure")[(mixed + region) % 2]]}},
        ]  # fmt: skip
    for number in range(mixed % 3):
        corner = {"x": 10.5 + 40 * number + worker % 3, "y": 20 + mixed / 10}
        shape = {**corner, "width": 30.25, "height": 25.5, "rotation": 0,
                 "rectanglelabels": [("Car", "Dog")[number]]}  # fmt: skip
        size = {"original_width": 640, "original_height": 480, "image_rotation": 0}
        found.append({**made("box", "rectanglelabels", shape, "img"), **size,
                      "id": f"b{task}{worker}{number}"})  # fmt: skip
    return found


def new_project(server: Server, title: str) -> int:
    """Return the number of a new project with every control."""
    made = server.ask("POST", "/api/projects/", {"title": title, "label_config": CONFIG})
    return int(made["id"])


def tasks_of(server: Server, project: int) -> dict[str, int]:
    """Return the id of every task, by its text."""
    found = server.ask("GET", f"/api/tasks?project={project}&page_size=200&fields=all")
    return {task["data"]["text"]: task["id"] for task in found["tasks"]}


def fill(server: Server, project: int, workers: list[int]) -> None:
    """Give a project submitted, cancelled, edited, empty and imported annotations."""
    server.ask("POST", f"/api/projects/{project}/import", [{"data": data_of(n)} for n in range(10)])
    imported = [
        {"data": data_of(n), "annotations": [
            {"result": result_of(n, worker), "completed_by": worker} for worker in workers]}
        for n in range(10, 14)
    ]  # fmt: skip
    server.ask("POST", f"/api/projects/{project}/import", imported)
    ids = tasks_of(server, project)
    for number in range(9):  # nobody labels the tenth
        task = ids[data_of(number)["text"]]
        for position, worker in enumerate(workers):
            body: dict[str, Any] = {"result": result_of(number, worker), "completed_by": worker}
            if (number, position) == (1, 0):
                body |= {"was_cancelled": True}
            if (number, position) == (2, 1):
                body["result"] = []
            made = server.ask("POST", f"/api/tasks/{task}/annotations/", body)
            if (number, position) == (3, 2):  # made a second time, and then the first is edited
                body["result"] = result_of(number + 50, worker)
                server.ask("POST", f"/api/tasks/{task}/annotations/", body)
                edited = {"result": result_of(number + 90, worker)}
                server.ask("PATCH", f"/api/annotations/{made['id']}/", edited)


def export(server: Server, project: int, folder: Path) -> dict[str, Path]:
    """Return the file of every format."""
    files = {}
    for name, suffix in FORMATS.items():
        query = f"exportType={name}&download_all_tasks=true"
        content = server.ask("GET", f"/api/projects/{project}/export?{query}")
        files[name] = folder / f"export.{suffix}"
        text = content if isinstance(content, bytes) else json.dumps(content).encode()
        files[name].write_bytes(text)
    return files


def judgements(path: Path, question: str) -> list[tuple[str, ...]]:
    """Return the rows (task, worker, answer) of a question, as text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data: Any = wc.read(path, label=question, type=QUESTIONS[question][1])
    table = {name: column for name, column in data.to_dict().items()
             if name not in ("timestamp", "duration")}  # fmt: skip
    if "tags" in table:  # the limits of the tokens are those of the spans
        table["limits"] = [data.task_columns["offsets"][task].tolist() for task in data.task]
    return sorted(tuple(map(str, row)) for row in zip(*table.values(), strict=True))


def sent(ids: dict[str, int], workers: list[int]) -> list[tuple[str, str, str]]:
    """Return the judgements about sentiment that must come back."""
    rows = []
    for number in (*range(9), *range(10, 14)):
        for position, worker in enumerate(workers):
            if (number, position) in ((1, 0), (2, 1)):  # cancelled, empty
                continue
            said = number + 90 if (number, position) == (3, 2) else number
            label = result_of(said, worker)[0]["value"]["choices"][0]
            rows.append((str(ids[data_of(number)["text"]]), str(worker), label))
    return sorted(rows)


def compare_formats(files: dict[str, Path], made: list[tuple[str, str, str]]) -> int:
    """Print the questions of every format; return how many differ."""
    wrong = int(judgements(files["JSON"], "sentiment") != made)
    print("judgements that were made come back" if not wrong else "judgements differ")
    try:
        read_gold(files["JSON"], label="sentiment")
        wrong += 1
    except DataError as error:
        print(str(error).partition("(")[2].partition(")")[0])
    for question in QUESTIONS:
        expected = judgements(files["JSON"], question)
        same = [name for name, path in files.items() if judgements(path, question) == expected]
        wrong += len(files) - len(same)
        print(f"{question:<10}{len(expected):>5} judgements, the same from {', '.join(same)}")
    return wrong


def predict(path: Path, question: str, *more: str) -> list[Any]:
    """Return the predictions that the command line writes."""
    place = path.parent / "predictions.json"
    _, kind, method = QUESTIONS[question]
    command = [
        sys.executable, "-m", "wisecrowd", "aggregate", str(path), "--label", question, "-q",
        *(() if kind is None else ("--type", kind)), *method,
        "-o", str(path.parent / "labels.csv"), "--predictions", str(place), *more,
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    written: list[Any] = json.loads(place.read_text())
    return written


def compare_predictions(server: Server, project: int, other: int, files: dict[str, Path]) -> int:
    """Send predictions back both ways; return how many calls were refused or dropped rows."""
    wrong = 0
    for name in ("JSON", "CSV"):
        for question, (to_name, _, _) in QUESTIONS.items():
            names = () if name == "JSON" else ("--to-name", to_name)
            tasks = predict(files[name], question, *names)
            status, made = server("POST", f"/api/projects/{other}/import", tasks)
            n_made = made.get("prediction_count") if status == 201 else str(made)[:120]
            rows = predict(files[name], question, "--existing-tasks", *names)
            bulk = f"/api/projects/{project}/import/predictions"
            status_of_rows, taken = server("POST", bulk, rows)
            n_taken = taken.get("created") if status_of_rows == 201 else str(taken)[:120]
            wrong += n_made != len(tasks)
            n_kept = kept(server, project, rows)
            wrong += n_taken != len(rows)
            wrong += n_kept != len(rows)
            print(
                f"{name:<5}{question:<10} import {status}: {n_made} of {len(tasks)}; "
                f"existing tasks {status_of_rows}: {n_taken} of {len(rows)}, unchanged {n_kept}"
            )
    return wrong


def kept(server: Server, project: int, rows: list[Any]) -> int:
    """Return how many of the predictions that were sent the server has as they were sent."""
    found = server.ask("GET", f"/api/predictions/?project={project}")
    stored = [(one["task"], one["model_version"], one["score"], one["result"]) for one in found]
    return sum(
        (row["task"], row["model_version"], row["score"], row["result"]) in stored for row in rows
    )


def run(server: Server) -> int:
    """Return how many comparisons failed."""
    print("Label Studio", server.ask("GET", "/api/version")["release"])
    stamp = int(time.time())
    projects = [new_project(server, f"wisecrowd {stamp} {name}") for name in ("one", "two")]
    try:
        workers = [
            server.ask("POST", "/api/users/", {
                "email": f"{name}{stamp}@example.org", "username": f"{name}{stamp}",
            })["id"]
            for name in ("ada", "ben", "cem")
        ]  # fmt: skip
        fill(server, projects[0], workers)
        ids = tasks_of(server, projects[0])
        with tempfile.TemporaryDirectory() as folder:
            files = export(server, projects[0], Path(folder))
            wrong = compare_formats(files, sent(ids, workers))
            wrong += compare_predictions(server, projects[0], projects[1], files)
        after = len(tasks_of(server, projects[0]))
        print(f"tasks of the project before and after: {len(ids)}, {after}")
        wrong += len(ids) != after
    finally:
        for project in projects:
            server("DELETE", f"/api/projects/{project}/")
    print(f"{wrong} differences, {server.n_requests} requests")
    return wrong


def main() -> None:
    """Compare, with a server that runs or with one that is started for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--token")
    parser.add_argument("--port", type=int, default=8099, help="of the server that is started")
    options = parser.parse_args()
    if options.url:
        sys.exit(bool(run(Server(options.url, options.token or ""))))
    with started(options.port) as server:
        sys.exit(bool(run(server)))


if __name__ == "__main__":
    main()
