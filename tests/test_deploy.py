"""What can be said about `deploy/` without a container engine or a service."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import click
import kubernetes.client
import psutil
import pytest
import yaml
from dask import config
from packaging.requirements import Requirement
from packaging.version import Version

import dsel
from dsel.cli import main
from dsel.cluster import connect
from tests.clusters import environment, free_port, make_certificates, wait_until

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"


def _read(name):
    return (DEPLOY / name).read_text(encoding="utf-8")


def _variables(file):
    lines = _read(f"kubernetes/{file}").splitlines()
    return dict(line.split("=", 1) for line in lines)


SERVICES = yaml.safe_load(_read("containers/compose.yaml"))["services"]
MADE = yaml.safe_load(_read("kubernetes/kustomization.yaml"))
MANIFESTS = [
    manifest
    for name in MADE["resources"]
    for manifest in yaml.safe_load_all(_read(f"kubernetes/{name}"))
]
PODS = [m["spec"]["template"]["spec"] for m in MANIFESTS if "template" in m["spec"]]
CONTAINERS = {each["name"]: each for pod in PODS for each in pod["containers"]}


# Schemas


def test_compose__follows_the_compose_specification():
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    command += ["vendor.compose-spec", DEPLOY / "containers/compose.yaml"]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda each: each["kind"])
def test_kubernetes__manifests_have_only_fields_that_kubernetes_has(manifest):
    version = manifest["apiVersion"].rpartition("/")[2]
    kind = f"{version.capitalize()}{manifest['kind']}"
    _check_fields(manifest, getattr(kubernetes.client, kind), kind)


def _check_fields(node, model, where):
    """Fail where a field is unknown, which Kubernetes would drop, or one is missing."""
    names = {model.attribute_map[field]: field for field in model.openapi_types}
    assert set(node) <= set(names), where
    for name, value in node.items():
        kind = model.openapi_types[names[name]]
        inner = re.fullmatch(r"list\[(\w+)\]|(V\d\w+)", kind)
        part = inner and getattr(kubernetes.client, inner[1] or inner[2], None)
        for each in (value if isinstance(value, list) else [value]) if part else []:
            _check_fields(each, part, f"{where}.{name}")
    # The models themselves refuse what lacks a required field.
    model(**{names[name]: value for name, value in node.items()})


def test_kubernetes__variables_are_settings_that_dask_has():
    """A name that Dask does not know would leave the cluster without TLS."""
    import distributed  # noqa: F401  its defaults are settings too

    for name in _variables("dask.env"):
        place = name.removeprefix("DASK_").lower().replace("__", ".")
        config.get(place)  # KeyError for another


def test_kubernetes__pods_find_the_certificates_that_they_are_told_of():
    [made] = MADE["secretGenerator"]
    told = {value for value in _variables("dask.env").values() if ".pem" in value}
    assert told == {f"/tls/{Path(file).name}" for file in made["files"]}
    for pod in PODS:
        [volume], [container] = pod["volumes"], pod["containers"]
        assert volume["secret"]["secretName"] == made["name"]
        assert container["volumeMounts"][0]["mountPath"] == "/tls"
        assert {"configMapRef": {"name": "dsel-dask"}} in container["envFrom"]


def test_compose__ports_are_open_on_loopback_only():
    ports = [port for each in SERVICES.values() for port in each.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


# Commands

LINES = [
    line
    for page in DEPLOY.glob("*/README.md")
    for block in re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.DOTALL | re.M)
    for line in block.splitlines()
]
"""Every line of every shell block of every page."""
COMMANDS = [
    words[words.index(program) :]
    for words in [
        *(shlex.split(line, comments=True) for line in LINES),
        *(shlex.split(each.get("command", "")) for each in SERVICES.values()),
        *(container.get("args", []) for container in CONTAINERS.values()),
        shlex.split(_variables("job.env")["COMMAND"]),
    ]
    for program in ("dsel", "dask")
    if program in words
]
"""Commands of ours and of Dask in them, in the compose file and in the manifests."""


def test_pages__name_files_that_are_there():
    named = {path for line in LINES for path in re.findall(r"deploy/[\w./-]+", line)}
    made = ("certificates", ".env", ".pem")
    missing = {path for path in named if not (ROOT / path).exists()}
    assert {path for path in missing if not path.endswith(made)} == set()


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words)[:60])
def test_commands__have_the_options_that_are_given(words):
    from distributed.cli import dask_scheduler, dask_worker

    dask = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
    program, *words = words
    command, context = main, None
    if program == "dask":
        name, *words = words
        command = dask[name]
    while isinstance(command, click.Group):
        context = command.make_context(command.name, words, parent=context)
        rest = [*context._protected_args, *context.args]
        _, command, words = command.resolve_command(context, rest)
    for parameter in command.params:
        if isinstance(parameter.type, click.Path):
            parameter.type = click.Path()  # inputs need not exist here
    command.make_context(command.name, words, parent=context)


@pytest.mark.parametrize("script", ["hosts/cluster.sh", "slurm/select.sh"])
def test_scripts__parse_and_can_be_run(script):
    path = DEPLOY / script
    assert path.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", path], check=True)


# The image


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_image__installs_in_a_clean_environment_from_what_it_copies(tmp_path):
    text = _read("containers/Containerfile").replace("\\\n", " ")
    for step in re.findall(r"^COPY (.*)$", text, re.MULTILINE):
        *sources, target = shlex.split(step)
        for source in map(ROOT.joinpath, sources):
            to = tmp_path / target
            if source.is_dir():
                shutil.copytree(source, to)
            else:
                to = to / source.name if target.endswith("/") else to
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, to)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    [install] = re.findall(r"^RUN (.*)$", text, re.MULTILINE)
    path = f"{tmp_path / 'venv' / 'bin'}:{environment()['PATH']}"
    clean = environment(PATH=path, PYTHONPATH="")
    subprocess.run(["bash", "-c", install], cwd=tmp_path, env=clean, check=True)
    subprocess.run(["dsel", "--help"], cwd=tmp_path / "venv", env=clean, check=True)


def test_constraints__hold_every_dependency_and_the_lower_bounds_that_are_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own, extras = project["dependencies"], project["optional-dependencies"].values()
    text = _read("constraints.txt")
    assert not re.search(r"://|--index|--find-links| @ ", text)
    pins = re.findall(r"^([\w.-]+)==([^\s;]+)", text.lower(), re.MULTILINE)
    lines = _read("constraints-minimum.txt").lower().splitlines()
    minimum = dict(line.split("==") for line in lines)
    assert {Requirement(line).name.lower() for line in own} <= set(minimum)
    for wanted in map(Requirement, (*own, *(line for each in extras for line in each))):
        name = wanted.name.lower()
        versions = [version for pinned, version in pins if pinned == name]
        assert versions, wanted
        assert all(version in wanted.specifier for version in versions), wanted
        [least] = [s.version for s in wanted.specifier if s.operator == ">="]
        assert Version(minimum.get(name, least)) == Version(least), wanted


# Plain hosts, for real


PATH = f"{Path(sys.executable).parent}:{environment()['PATH']}"


class Host:
    """A folder with certificates, in which `cluster.sh` and programs are run."""

    def __init__(self, folder):
        self.folder, self.tls = folder, folder / "certificates"
        make_certificates(self.tls, "127.0.0.1")
        port = str(free_port())
        self.address = f"tls://127.0.0.1:{port}"
        self.variables = environment(DSEL_PORT=port, PATH=PATH)

    def run(self, *command):
        options = {"capture_output": True, "text": True, "env": self.variables}
        return subprocess.run(command, cwd=self.folder, **options)

    def cluster(self, *words):
        return self.run(DEPLOY / "hosts/cluster.sh", *words)

    def start(self, n_workers):
        """Start a cluster; return the process ids of its workers."""
        self.cluster("scheduler")
        self.cluster("workers", self.address, str(n_workers))
        with connect(self.address, tls=self.tls, timeout=60) as client:
            client.wait_for_workers(n_workers, timeout=60)
            return list(client.run(os.getpid).values())


@pytest.fixture
def host(tmp_path):
    host = Host(tmp_path)
    yield host
    host.cluster("stop")


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_hosts__start_a_tls_cluster_check_it_run_the_main_job_and_stop_it(host):
    check = [sys.executable, DEPLOY / "check.py", host.address, "certificates"]
    nobody = host.run(*check)
    assert nobody.returncode == 1
    assert nobody.stderr.startswith("error: no scheduler answered at tls://")
    assert nobody.stderr.count("\n") == 1
    pids = host.start(2)
    assert host.cluster("status").stdout == "scheduler runs\nworkers runs\n"
    assert "2 workers with 2 threads, versions agree" in host.run(*check).stdout
    content = {"address": host.address, "tls": str(host.tls)}
    (host.folder / "cluster.yaml").write_text(yaml.safe_dump(content))
    demo = ["dsel", "demo", "--scheduler", "cluster.yaml", "--out", "results"]
    done = host.run(sys.executable, "-m", *demo)
    assert done.returncode == 0, done.stderr
    certificate = dsel.select(dsel.open_results(host.folder / "results")).certificate
    assert certificate.certified
    assert certificate.headline() in done.stdout
    assert "Error at most 5.6% (95% confidence)" in done.stdout  # as in this process
    log = (host.folder / "dsel-run/workers.log").read_text()
    assert "PRIVATE KEY" not in done.stdout + done.stderr + log
    host.cluster("stop")
    wait_until(lambda: not any(map(psutil.pid_exists, pids)), what="the end of workers")


@pytest.mark.cluster
def test_hosts__bring_a_killed_scheduler_and_its_workers_back_and_say_so(host):
    host.start(1)
    loop = psutil.Process(int((host.folder / "dsel-run/scheduler.pid").read_text()))
    for child in loop.children():
        child.kill()

    def has_a_worker():
        with (
            suppress(OSError),
            connect(host.address, tls=host.tls, timeout=10) as client,
        ):
            return len(client.nthreads()) == 1

    wait_until(has_a_worker, seconds=60, what="a new cluster")
    assert "scheduler runs; ended and started again" in host.cluster("status").stdout


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"DSEL_CERTIFICATES": "nowhere"}, "no nowhere/ca.pem here"),
        ({"PATH": "/usr/bin:/bin"}, "there is no command dask"),
    ],
)
def test_hosts__start_nothing_that_cannot_run(host, changed, message):
    host.variables.update(changed)
    failed = host.cluster("scheduler")
    assert failed.returncode
    assert message in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert not (host.folder / "dsel-run").exists()


def test_hosts__stop_ends_nothing_that_it_did_not_start(host):
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        (host.folder / "dsel-run").mkdir()
        (host.folder / "dsel-run/workers.pid").write_text(str(other.pid))
        host.cluster("stop")
        assert other.poll() is None
        other.kill()


@pytest.mark.cluster
def test_kubernetes__its_commands_and_variables_make_a_tls_cluster(tmp_path):
    make_certificates(tmp_path / "tls", "127.0.0.1")
    variables = {"PATH": PATH, "COMMAND": "dsel demo --quiet"}
    for name, value in _variables("dask.env").items():
        variables[name] = value.replace("/tls/", f"{tmp_path}/tls/")
    options = {"cwd": tmp_path, "env": environment(**variables)}
    port = str(free_port())
    scheduler, worker, job = (
        [word.replace("tls://dsel-scheduler:8786", f"tls://127.0.0.1:{port}")
         for word in CONTAINERS[name][key]]
        for name, key in (("scheduler", "args"), ("worker", "args"), ("job", "command"))
    )  # fmt: skip
    local = {"tls://0.0.0.0": "tls://127.0.0.1", ":8787": "127.0.0.1:0"}
    scheduler = [local.get(word, word) for word in scheduler] + ["--port", port]
    started = [subprocess.Popen(words, **options) for words in (scheduler, worker)]
    try:
        given = {"capture_output": True, "text": True, "timeout": 120, **options}
        done = subprocess.run(job, **given)
        assert "Error at most" in done.stdout, done.stderr
    finally:
        for process in started:
            process.terminate()
            process.wait()
