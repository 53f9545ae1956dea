"""A whole campaign with a real Label Studio: five annotators, and our processes killed twice.

``make label-studio`` installs Label Studio in an environment of its own and runs this. A project is
made by the API. ``wisecrowd label-studio watch`` sends the order, ``wisecrowd loop`` takes the
webhooks. Five simulated annotators take the next task as the page does, answer, skip, edit and
delete. Both processes are killed with signal 9 in the middle, twice, and started again while the
annotators go on. At the end every acknowledged annotation must be in the campaign once.

The order is measured where a task is handed out: among the tasks of the current order that are
free for this annotator, which place has the one that Label Studio gave?
"""

from __future__ import annotations

import argparse
import http.cookiejar
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request
import warnings
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.trust.label_studio_server import TOKEN, started
from wisecrowd.acquire import Campaign
from wisecrowd.acquire.label_studio_api import LabelStudioClient, LabelStudioError, NotThereError

CLASSES = ("Positive", "Negative", "Neutral")
CONFIG = """<View><Text name="text" value="$text"/><Choices name="mood" toName="text">
<Choice value="Positive"/><Choice value="Negative"/><Choice value="Neutral"/></Choices></View>"""
SKILLS = (0.95, 0.9, 0.8, 0.7, 0.6)
SECRET = "a secret for this run"
PASSWORD = "secret123"
LIMIT = 1800  # seconds of the campaign
SKIP, EDIT, DELETE = 0.03, 0.05, 0.02  # shares of the answers
LEAST_FIRST = 0.95  # share of tasks handed out that are our first choice


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def sign_up(admin: LabelStudioClient, email: str) -> LabelStudioClient:
    """Return the client of a new user, who signs up by invitation as a person does."""
    invitation = admin.call("GET", "/api/invite")["token"]
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    place = f"{admin.url}/user/signup/?token={invitation}"
    opener.open(place, timeout=60).read()
    proof = next(cookie.value for cookie in jar if cookie.name == "csrftoken")
    form = {"email": email, "password": PASSWORD, "csrfmiddlewaretoken": proof}
    opener.open(place, urllib.parse.urlencode(form).encode(), timeout=60).read()
    with opener.open(f"{admin.url}/api/current-user/token", timeout=60) as reply:
        token = json.load(reply)["token"]
    return LabelStudioClient(admin.url, token)


class Processes:
    """Our two processes, which can be killed and started again."""

    def __init__(self, folder: Path, url: str, project: int, budget: int) -> None:
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        hook = f"http://{self.address}/webhooks/label-studio"
        own = [sys.executable, "-m", "wisecrowd"]
        self._commands = {
            "watch": [*own, "label-studio", "watch", str(folder), "--url", url,
                      "--project", str(project), "--every", "1", "-n", "20", "--webhook", hook,
                      "--secret", "env:CAMPAIGN_SECRET", "--budget", str(budget),
                      "--max-labels", "5", "--stop", "0", "--json"],
            "loop": [*own, "loop", str(folder), "--listen", self.address,
                     "--secret", "env:CAMPAIGN_SECRET"],
        }  # fmt: skip
        self._folder = folder.parent
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        environment = os.environ | {"CAMPAIGN_SECRET": SECRET, "LABEL_STUDIO_API_KEY": TOKEN}
        with (
            (self._folder / f"{name}.out").open("ab") as out,
            (self._folder / f"{name}.err").open("ab") as err,
        ):
            self.running[name] = subprocess.Popen(
                self._commands[name], env=environment, stdout=out, stderr=err
            )

    def kill(self) -> None:
        """End both as a power cut would."""
        for process in self.running.values():
            process.send_signal(signal.SIGKILL)
            process.wait()

    def stop(self) -> None:
        for process in self.running.values():
            process.terminate()
            process.wait(30)

    def cycles(self) -> list[dict[str, Any]]:
        """Return what the watch has printed; a line that a kill has cut off is left out."""
        lines = (self._folder / "watch.out").read_text().split("\n")
        return [json.loads(line) for line in lines if line.endswith("}")]


class Crowd:
    """Five annotators, and a record of everything that the server has acknowledged."""

    def __init__(self, admin: LabelStudioClient, project: int, seed: int) -> None:
        self.admin, self.project = admin, project
        stamp = int(time.time())
        self.clients = [sign_up(admin, f"ann{n}.{stamp}@example.org") for n in range(len(SKILLS))]
        self.users = [str(one.call("GET", "/api/current-user/whoami")["id"])
                      for one in self.clients]  # fmt: skip
        found = [task for page in admin.tasks(project) for task in page]
        self.truth = {task["id"]: task["data"]["truth"] for task in found}
        self.labels: dict[tuple[str, str], str] = {}  # acknowledged, by task and user
        self.places: list[tuple[int, int]] = []  # place of a served task, of so many
        self.outside = self.exhausted = self.during_push = self.first_in_push = self.n_sent = (
            self.n_waits
        ) = 0
        self.n_other: Counter[str] = Counter()
        self.done = threading.Event()
        self._locks = [threading.Lock() for _ in SKILLS]
        self._held: dict[int, int] = {}
        self._seen: list[set[int]] = [set() for _ in SKILLS]
        self._orders: dict[str, list[int]] = {}
        self._rng = [random.Random(1000 * seed + n) for n in range(len(SKILLS))]
        self.errors: list[str] = []

    def work(self, user: int) -> None:
        """Take tasks and answer them until the campaign is over."""
        try:
            while not self.done.is_set():
                task = self._take(user)
                if task is None:
                    self.n_waits += 1
                    self.done.wait(0.3)
                    continue
                self.done.wait(self._rng[user].uniform(0.05, 0.2))
                with self._locks[user]:
                    self._answer(user, task)
        except Exception as error:
            self.errors.append(f"annotator {user}: {error!r}")
            raise

    def _take(self, user: int) -> int | None:
        """Return the next task; nobody submits meanwhile, so that its place can be told."""
        with ExitStack() as quiet:
            for lock in self._locks:
                quiet.enter_context(lock)
            before = self._current()
            free = self._free(*before, user)
            try:
                number = self.clients[user].call("GET", f"/api/projects/{self.project}/next/")["id"]
            except NotThereError:
                return None
            self._held[user] = number
            after = self._current()
            if after != before:  # nobody submits now, so a push is under way
                self.during_push += 1
                self.first_in_push += number in (free[:1] + self._free(*after, user)[:1])
            elif number in free:
                self.places.append((free.index(number), len(free)))
            elif free:
                self.outside += 1
            else:
                self.exhausted += 1
            return int(number)

    def _current(self) -> tuple[str, dict[int, dict[str, Any]]]:
        """Return the version of the order, and the places of every task."""
        project = self.admin.call("GET", f"/api/projects/{self.project}/?include=model_version")
        fields = "id,overlap,is_labeled,total_annotations"
        place = f"/api/tasks/?project={self.project}&page_size=200&include={fields}"
        tasks = self.admin.call("GET", place)["tasks"]
        return str(project["model_version"]), {task["id"]: task for task in tasks}

    def _free(self, version: str, states: dict[int, dict[str, Any]], user: int) -> list[int]:
        """Return the tasks of an order that have a place left for an annotator."""
        if version not in self._orders:
            rows = self.admin.call("GET", f"/api/predictions/?project={self.project}")
            mine = [row for row in rows if row["model_version"] == version]
            self._orders[version] = [
                row["task"] for row in sorted(mine, key=lambda row: row["score"])
            ]
        held = Counter(task for other, task in self._held.items() if other != user)
        return [
            number
            for number in self._orders[version]
            if number not in self._seen[user]
            and not states[number]["is_labeled"]
            and states[number]["total_annotations"] + held[number] < states[number]["overlap"]
        ]

    def _answer(self, user: int, task: int) -> None:
        rng, client = self._rng[user], self.clients[user]
        self._seen[user].add(task)
        pair = str(task), self.users[user]
        label = self.truth[task]
        if rng.random() > SKILLS[user]:
            label = rng.choice([one for one in CLASSES if one != label])
        if rng.random() < SKIP:
            body = {"result": [], "was_cancelled": True, "lead_time": 1.0}
            client.call("POST", f"/api/tasks/{task}/annotations/?project={self.project}", body)
            self.n_other["skipped"] += 1
        else:
            made = client.call("POST", f"/api/tasks/{task}/annotations/", self._body(label))
            self.labels[pair] = label
            self.n_sent += 1
            if rng.random() < EDIT:
                label = rng.choice(CLASSES)
                client.call("PATCH", f"/api/annotations/{made['id']}/", self._body(label))
                self.labels[pair] = label
                self.n_other["edited"] += 1
            elif rng.random() < DELETE:
                client.call("DELETE", f"/api/annotations/{made['id']}/")
                del self.labels[pair]
                self._seen[user].discard(task)  # and so may be handed out again
                self.n_other["deleted"] += 1
        del self._held[user]

    @staticmethod
    def _body(label: str) -> dict[str, Any]:
        result = {"from_name": "mood", "to_name": "text", "type": "choices",
                  "value": {"choices": [label]}}  # fmt: skip
        return {"result": [result], "lead_time": 1.0}


def new_project(admin: LabelStudioClient, n_tasks: int, rng: random.Random) -> int:
    """Return the number of a project as a person would make one: in sequence, three answers."""
    made = admin.call("POST", "/api/projects/", {
        "title": "wisecrowd campaign", "label_config": CONFIG, "maximum_annotations": 3,
    })  # fmt: skip
    tasks = [{"text": f"Text {n}", "truth": rng.choice(CLASSES)} for n in range(n_tasks)]
    admin.call("POST", f"/api/projects/{made['id']}/import", tasks)
    return int(made["id"])


def wait_until(condition: Any, what: str, seconds: float = LIMIT) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"{what} did not happen within {seconds:g} seconds.")
        time.sleep(0.1)


def is_listening(address: str) -> bool:
    host, port = address.split(":")
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((host, int(port))) == 0


def run_campaign(crowd: Crowd, processes: Processes, budget: int) -> list[str]:
    """Let the annotators work while our processes are killed; return what was killed when."""
    processes.start("watch")
    wait_until(lambda: crowd.admin.project(crowd.project)["model_version"], "the first order", 120)
    processes.start("loop")
    wait_until(lambda: is_listening(processes.address), "the loop's start", 60)
    threads = [threading.Thread(target=crowd.work, args=(n,), daemon=True)
               for n in range(len(SKILLS))]  # fmt: skip
    for thread in threads:
        thread.start()
    events = []
    for share in (1 / 3, 2 / 3):
        wait_until(lambda goal=share * budget: crowd.n_sent >= goal or crowd.errors, "progress")
        processes.kill()
        at = crowd.n_sent
        # The annotators go on for a while: these webhooks are lost.
        wait_until(lambda goal=at + 8: crowd.n_sent >= goal or crowd.errors, "progress", 120)
        events.append(f"killed at {at} answers, started again at {crowd.n_sent}")
        for name in ("loop", "watch"):
            processes.start(name)
    watch = processes.running["watch"]
    wait_until(lambda: watch.poll() is not None or crowd.errors, "the end of the campaign")
    crowd.done.set()
    for thread in threads:
        thread.join(60)
    return events


def differences(crowd: Crowd, folder: Path) -> tuple[int, int, int]:
    """Return answers lost, answers that nobody gave, and answers stored twice."""
    with Campaign.open(folder / "campaign.db") as campaign:
        table = campaign.labels.to_dict()
        stored = campaign._store.rows("SELECT task, worker, label FROM answers ORDER BY row")
    found = {(task, worker): label for task, worker, label in
             zip(table["task"], table["worker"], table["label"], strict=True)}  # fmt: skip
    lost = sum(found.get(pair) != label for pair, label in crowd.labels.items())
    invented = sum(pair not in crowd.labels for pair in found)
    last: dict[Any, Any] = {}
    doubled = 0
    for task, worker, label in stored:  # a pair has a new row only if its label has changed
        doubled += last.get((task, worker), "none") == label
        last[task, worker] = label
    return lost, invented, doubled


def report(crowd: Crowd, folder: Path, cycles: list[dict[str, Any]]) -> int:
    """Print the figures; return how many of the conditions do not hold."""
    lost, invented, doubled = differences(crowd, folder)
    first = sum(place == 0 for place, _ in crowd.places) / max(len(crowd.places), 1)
    chance = sum(1 / size for _, size in crowd.places) / max(len(crowd.places), 1)
    n_tasks = crowd.admin.project(crowd.project)["task_number"]
    with Campaign.open(folder / "campaign.db") as campaign:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = campaign.fit("one-coin")
        right = np.mean([crowd.truth[int(task)] == label
                         for task, label in zip(fit.tasks_, fit.labels_, strict=True)])  # fmt: skip
    polled = sum(one["new"] + one["withdrawn"] for one in cycles)
    orders = sum(one["version"] is not None for one in cycles)
    other = ", ".join(f"{n} {name}" for name, n in sorted(crowd.n_other.items()))
    print(f"answers acknowledged: {crowd.n_sent} ({other}); {len(crowd.labels)} count at the end")
    print(f"watch: {polled} changes read; {orders} orders sent")
    print(f"lost {lost}, invented {invented}, doubled {doubled}; tasks {len(crowd.truth)} "
          f"before, {n_tasks} after")  # fmt: skip
    print(f"handed out: {len(crowd.places)} from our order, our first choice {first:.3f} "
          f"(at random {chance:.3f}), worst place {max(crowd.places)[0] + 1}; "
          f"{crowd.outside} past it, {crowd.exhausted} when it was used up, "
          f"{crowd.during_push} during a push ({crowd.first_in_push} of them first before or after "
          f"it); {crowd.n_waits} times nothing was free")  # fmt: skip
    print(f"accuracy of the labels: {right:.3f} at {len(crowd.labels) / len(crowd.truth):.2f} "
          "labels per task")  # fmt: skip
    failed = [lost, invented, doubled, n_tasks != len(crowd.truth), first < LEAST_FIRST]
    failed += [crowd.outside, bool(crowd.errors)]
    for error in crowd.errors:
        print(error)
    return sum(map(bool, failed))


def main() -> None:
    """Run the campaign, and exit with 1 if a condition does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--url", help="of a server that runs; its administrator has --token")
    parser.add_argument("--token", default=TOKEN)
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--budget", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with ExitStack() as stack:
        url = asked.url or stack.enter_context(started(free_port())).url
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "campaign"
        admin = LabelStudioClient(url, asked.token)
        print(f"Label Studio {admin.version()}: {asked.tasks} tasks, {len(SKILLS)} annotators, "
              f"budget {asked.budget}, seed {asked.seed}", flush=True)  # fmt: skip
        project = new_project(admin, asked.tasks, random.Random(asked.seed))
        crowd = Crowd(admin, project, asked.seed)
        processes = Processes(folder, url, project, asked.budget)
        begin = time.monotonic()
        try:
            for event in run_campaign(crowd, processes, asked.budget):
                print(event)
            last = processes.cycles()[-1]
            print(f"stop: {last['stop']}, after {time.monotonic() - begin:.0f} seconds")
            before = differences(crowd, folder)
            print(f"before the last look: {before[0]} not there yet")
            # Answers that were under way when the watch ended came by webhook, or come now.
            processes.start("watch")
            wait_until(lambda: processes.running["watch"].poll() is not None, "the last look", 60)
            failed = report(crowd, folder, processes.cycles())
        except (SystemExit, LabelStudioError, AssertionError):
            for name in ("watch", "loop"):
                print((folder.parent / f"{name}.err").read_text()[-2000:], file=sys.stderr)
            raise
        finally:
            crowd.done.set()
            processes.stop()
    print("passed" if not failed else f"{failed} conditions do not hold")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
