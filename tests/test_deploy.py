"""What can be said about `deploy/` without a container engine or a service."""

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
from dask.utils import parse_bytes
from packaging.requirements import Requirement
from packaging.version import Version

import dsel
from dsel.cli import main
from dsel.cluster import connect
from tests.clusters import environment, free_port, make_certificates, wait_until

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
PAGES = sorted(DEPLOY.glob("*/README.md"))


def _read(name):
    return (DEPLOY / name).read_text(encoding="utf-8")


def _yaml(name):
    return yaml.safe_load(_read(name))


def _page_commands():
    """Every line of every shell block of every page, split as a shell would."""
    for page in PAGES:
        blocks = re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.DOTALL | re.M)
        for line in "".join(blocks).splitlines():
            words = shlex.split(line, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words.pop(0)
            if words:
                yield pytest.param(words, id=f"{page.parent.name}: {line[:60]}")


def _manifest_commands():
    """Command lines inside of the compose file and the Kubernetes manifests."""
    for name, service in SERVICES.items():
        if "command" in service:
            yield pytest.param(shlex.split(service["command"]), id=f"compose {name}")
    for pod in PODS:
        for container in pod["containers"]:
            if "args" in container:
                yield pytest.param(container["args"], id=f"pod {container['name']}")
    yield pytest.param(shlex.split(_variables("job.env")["COMMAND"]), id="job.env")


def _variables(file):
    lines = _read(f"kubernetes/{file}").splitlines()
    return dict(line.split("=", 1) for line in lines)


SERVICES = _yaml("containers/compose.yaml")["services"]
MADE = _yaml("kubernetes/kustomization.yaml")
MANIFESTS = [
    manifest
    for name in MADE["resources"]
    for manifest in yaml.safe_load_all(_read(f"kubernetes/{name}"))
]
TEMPLATES = [m["spec"]["template"] for m in MANIFESTS if "template" in m["spec"]]
PODS = [template["spec"] for template in TEMPLATES]
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


@pytest.mark.parametrize("pod", PODS, ids=lambda pod: pod["containers"][0]["name"])
def test_kubernetes__pods_are_admitted_and_get_files_and_variables_that_are_made(pod):
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    [volume], [container] = pod["volumes"], pod["containers"]
    context, [mount] = container["securityContext"], container["volumeMounts"]
    assert not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    secrets = {each["name"]: each["files"] for each in MADE["secretGenerator"]}
    maps = {each["name"]: each["envs"] for each in MADE["configMapGenerator"]}
    assert mount["name"] == volume["name"]
    files = {Path(file).name for file in secrets[volume["secret"]["secretName"]]}
    references = [source.get("configMapRef") for source in container["envFrom"]]
    variables = {}
    for reference in filter(None, references):
        for file in maps[reference["name"]]:
            variables |= _variables(file)
    paths = [Path(value) for value in variables.values() if value.endswith(".pem")]
    assert len(paths) == 7
    assert {str(path.parent) for path in paths} == {mount["mountPath"]}
    assert {path.name for path in paths} <= files
    assert container["name"] != "job" or "COMMAND" in variables


def test_kubernetes__variables_are_settings_that_dask_has():
    """A name that Dask does not know would leave the cluster without TLS."""
    import distributed  # noqa: F401  its defaults are settings too

    for name in _variables("dask.env"):
        place = name.removeprefix("DASK_").lower().replace("__", ".")
        config.get(place)  # KeyError for another


def test_kubernetes__schedulers_have_time_to_answer_and_dask_ends_a_worker_first():
    [probe] = [c["livenessProbe"] for c in CONTAINERS.values() if "livenessProbe" in c]
    assert probe["timeoutSeconds"] >= 10
    assert probe["failureThreshold"] * probe["periodSeconds"] >= 120
    [patch] = yaml.safe_load(MADE["patches"][0]["patch"])
    limit = parse_bytes(patch["value"]["limits"]["memory"])
    words = CONTAINERS["worker"]["args"]
    share = float(words[words.index("--memory-limit") + 1])
    assert share * limit + 256 * 2**20 <= limit


def test_kubernetes__kustomization_changes_what_is_there():
    names = [manifest["metadata"]["name"] for manifest in MANIFESTS]
    for each in [*MADE["replicas"], *(patch["target"] for patch in MADE["patches"])]:
        assert each["name"] in names
    images = {container["image"] for container in CONTAINERS.values()}
    assert images == {image["name"] for image in MADE["images"]}


def test_kubernetes__service_and_policy_select_the_pods():
    labels = [template["metadata"]["labels"] for template in TEMPLATES]
    by_name = {each["app.kubernetes.io/component"]: each for each in labels}
    assert set(by_name) == {"scheduler", "worker", "job"}
    by_kind = {manifest["kind"]: manifest["spec"] for manifest in MANIFESTS}
    assert by_kind["Service"]["selector"] == by_name["scheduler"]
    policy = by_kind["NetworkPolicy"]["podSelector"]["matchLabels"]
    assert all(policy.items() <= each.items() for each in labels)
    for manifest in MANIFESTS:
        if manifest["kind"] == "Deployment":
            selector = manifest["spec"]["selector"]["matchLabels"]
            assert selector == manifest["spec"]["template"]["metadata"]["labels"]


def test_compose__services_fit_their_memory_restart_and_listen_on_loopback():
    assert all("mem_limit" in service for service in SERVICES.values())
    ports = [port for each in SERVICES.values() for port in each.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    for name in ("scheduler", "worker"):  # Dask restarts none of both
        assert SERVICES[name]["restart"] == "unless-stopped"
    worker = SERVICES["worker"]
    in_memory = [re.search(r"size=(\w+)", entry)[1] for entry in worker["tmpfs"]]
    words = shlex.split(worker["command"])
    mine = parse_bytes(words[words.index("--memory-limit") + 1])
    spilled = sum(map(_binary, in_memory))
    assert mine + spilled + 256 * 2**20 <= _binary(worker["mem_limit"])


def _binary(amount):
    """Bytes of an amount such as 4g, which for Docker is 4 GiB."""
    return int(amount[:-1]) * {"m": 2**20, "g": 2**30}[amount[-1]]


def test_image__starts_from_a_named_version():
    (base,) = _containerfile_steps("FROM")
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", base)


# Commands

OTHER_PROGRAMS = {
    "docker", "kubectl", "sbatch", "squeue", "scancel", "tail", "printf", "pip",
}  # fmt: skip


@pytest.mark.parametrize("script", ["hosts/cluster.sh", "slurm/select.sh"])
def test_scripts__parse_and_can_be_run(script):
    path = DEPLOY / script
    assert path.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", path], check=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_pages__say_how_to_start_check_scale_and_stop(page):
    headings = re.findall(r"^## (\w+)$", page.read_text(), re.MULTILINE)
    assert headings[:4] == ["Start", "Check", "Scale", "Stop"]


@pytest.mark.parametrize("words", list(_page_commands()))
def test_pages__name_only_commands_that_exist(words):
    program = words[0]
    if program == "dsel":
        _parse_dsel(words[1:])
    elif program == "python":
        assert (ROOT / words[1]).is_file()
    elif program.startswith("deploy/"):
        assert (ROOT / program).is_file()
        assert re.search(rf"^{words[1]}\)", (ROOT / program).read_text(), re.MULTILINE)
    else:
        assert program in OTHER_PROGRAMS
    if "client" in words and "dsel" in words:
        _parse_dsel(words[words.index("dsel") + 1 :])
    for word in words[1:]:
        if word.startswith("deploy/") and not word.endswith(
            ("certificates", ".env", ".pem")
        ):
            assert (ROOT / word).exists()


@pytest.mark.parametrize("words", list(_manifest_commands()))
def test_manifests__give_options_that_the_commands_have(words):
    from distributed.cli import dask_scheduler, dask_worker

    program, name, *rest = words
    if program == "dsel":
        _parse_dsel(words[1:])
    else:
        assert program == "dask"
        commands = {"scheduler": dask_scheduler.main, "worker": dask_worker.main}
        commands[name].make_context(name, rest)


def _parse_dsel(words):
    """Parse as the command would, with inputs that need not exist."""
    command, context = main, None
    while isinstance(command, click.Group):
        context = command.make_context(command.name, words, parent=context)
        rest = [*context._protected_args, *context.args]
        name, command, words = command.resolve_command(context, rest)
    for parameter in command.params:
        if isinstance(parameter.type, click.Path):
            parameter.type = click.Path()
    command.make_context(name, words, parent=context)


# The image


def _containerfile_steps(instruction):
    text = _read("containers/Containerfile").replace("\\\n", " ")
    return [
        line.removeprefix(instruction).strip()
        for line in text.splitlines()
        if line.startswith(instruction + " ")
    ]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_image__installs_in_a_clean_environment_from_what_it_copies(tmp_path):
    for step in _containerfile_steps("COPY"):
        *sources, target = shlex.split(step)
        for source in map(ROOT.joinpath, sources):
            to = tmp_path / target
            if source.is_dir():
                shutil.copytree(source, to)
            else:
                folder = to if target.endswith("/") else to.parent
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, folder)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    (install,) = _containerfile_steps("RUN")
    path = f"{tmp_path / 'venv' / 'bin'}:{environment()['PATH']}"
    clean = environment(PATH=path, PYTHONPATH="")
    subprocess.run(["bash", "-c", install], cwd=tmp_path, env=clean, check=True)
    subprocess.run(["dsel", "--help"], cwd=tmp_path / "venv", env=clean, check=True)


@pytest.fixture
def wanted():
    """Requirements of the project and of all its extras, and those of itself."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    own = [Requirement(line) for line in project["dependencies"]]
    return own, [*own, *(Requirement(line) for extra in extras for line in extra)]


def test_constraints__hold_no_address_and_every_dependency(wanted):
    text = _read("constraints.txt")
    assert not re.search(r"://|--index|--find-links| @ ", text)
    pins = re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)
    for requirement in wanted[1]:
        name = requirement.name.lower()
        versions = [version for pinned, version in pins if pinned.lower() == name]
        assert versions, requirement
        assert all(v in requirement.specifier for v in versions), requirement


def test_constraints_minimum__are_the_lower_bounds_that_are_declared(wanted):
    lines = _read("constraints-minimum.txt").splitlines()
    pinned = dict(line.split("==") for line in lines)
    assert {each.name.lower() for each in wanted[0]} <= set(pinned)
    for requirement in wanted[1]:
        [least] = [s.version for s in requirement.specifier if s.operator == ">="]
        here = pinned.get(requirement.name.lower(), least)
        assert Version(here) == Version(least), requirement


# Plain hosts, for real


PATH = f"{Path(sys.executable).parent}:{environment()['PATH']}"


@pytest.fixture
def hosts(tmp_path):
    make_certificates(tmp_path / "certificates", "127.0.0.1")
    port = free_port()
    variables = environment(DSEL_PORT=str(port), PATH=PATH)

    def run(*words, program=(DEPLOY / "hosts/cluster.sh",)):
        command = [*program, *words]
        options = {"capture_output": True, "text": True}
        return subprocess.run(command, cwd=tmp_path, env=variables, **options)

    run.address = f"tls://127.0.0.1:{port}"
    run.tls = tmp_path / "certificates"
    run.folder = tmp_path
    run.variables = variables
    yield run
    run("stop")


@pytest.mark.cluster
def test_hosts__start_a_tls_cluster_check_it_and_stop_it(hosts):
    check = [sys.executable, DEPLOY / "check.py", hosts.address, "certificates"]
    nobody = hosts(program=check)
    assert nobody.returncode == 1
    assert nobody.stderr.startswith("error: no scheduler answered at tls://")
    assert len(nobody.stderr.splitlines()) == 1
    hosts("scheduler")
    hosts("workers", hosts.address, "2")
    assert hosts("status").stdout == "scheduler runs\nworkers runs\n"
    with connect(hosts.address, tls=hosts.tls, timeout=60) as client:
        wait_until(lambda: len(client.nthreads()) == 2, what="two workers")
        pids = client.run(lambda: __import__("os").getpid()).values()
        assert client.submit(sum, [1, 2]).result() == 3
    found = hosts(program=check).stdout
    assert "2 workers with 2 threads, versions agree" in found
    hosts("stop")
    wait_until(lambda: not any(map(psutil.pid_exists, pids)), what="the end of workers")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"DSEL_CERTIFICATES": "nowhere"}, "no nowhere/ca.pem here"),
        ({"PATH": "/usr/bin:/bin"}, "there is no command dask"),
    ],
)
def test_hosts__start_nothing_that_cannot_run(hosts, changed, message):
    hosts.variables.update(changed)
    failed = hosts("scheduler")
    assert failed.returncode
    assert message in failed.stderr
    assert len(failed.stderr.splitlines()) == 1
    assert not (hosts.folder / "dsel-run").exists()


@pytest.mark.cluster
def test_hosts__status_says_how_often_something_had_to_be_started_again(hosts):
    hosts("workers", hosts.address.replace("tls", "tcp"), "1")
    wait_until(
        lambda: "ended and started again" in hosts("status").stdout,
        what="the second start",
    )


def test_hosts__stop_ends_nothing_that_it_did_not_start(hosts):
    other = subprocess.Popen(["sleep", "60"], start_new_session=True)
    (hosts.folder / "dsel-run").mkdir()
    (hosts.folder / "dsel-run/workers.pid").write_text(str(other.pid))
    hosts("stop")
    assert other.poll() is None
    other.kill()
    other.wait()


@pytest.mark.cluster
@pytest.mark.timeout(300)
def test_hosts__run_the_main_job_with_tls(hosts):
    hosts("scheduler")
    hosts("workers", hosts.address, "2")
    content = {"address": hosts.address, "tls": str(hosts.tls)}
    (hosts.folder / "cluster.yaml").write_text(yaml.safe_dump(content))
    demo = [sys.executable, "-m", "dsel", "demo", "--scheduler", "cluster.yaml"]
    done = hosts("--out", "results", program=demo)
    assert done.returncode == 0, done.stderr
    certificate = dsel.select(dsel.open_results(hosts.folder / "results")).certificate
    assert certificate.certified
    assert certificate.headline() in done.stdout
    assert "Observed" in done.stdout
    log = (hosts.folder / "dsel-run/workers.log").read_text()
    assert "PRIVATE KEY" not in done.stdout + done.stderr + log


@pytest.mark.cluster
def test_hosts__bring_a_killed_scheduler_and_its_workers_back(hosts):
    hosts("scheduler")
    hosts("workers", hosts.address, "1")
    with connect(hosts.address, tls=hosts.tls, timeout=60) as client:
        client.wait_for_workers(1, timeout=60)
    loop = psutil.Process(int((hosts.folder / "dsel-run/scheduler.pid").read_text()))
    for child in loop.children():
        child.kill()

    def has_a_worker():
        with (
            suppress(OSError),
            connect(hosts.address, tls=hosts.tls, timeout=10) as client,
        ):
            return len(client.nthreads()) == 1

    wait_until(has_a_worker, seconds=60, what="a new cluster")


@pytest.mark.cluster
def test_kubernetes__its_commands_and_variables_make_a_tls_cluster(tmp_path):
    make_certificates(tmp_path / "tls", "127.0.0.1")
    variables = {
        name: value.replace("/tls/", f"{tmp_path}/tls/")
        for name, value in _variables("dask.env").items()
    }
    variables |= {"PATH": PATH, "COMMAND": "dsel demo --quiet --seed 0"}
    options = {"cwd": tmp_path, "env": environment(**variables)}
    port = free_port()
    local = f"tls://127.0.0.1:{port}"
    scheduler, worker, job = (
        [word.replace("tls://dsel-scheduler:8786", local) for word in words]
        for words in (
            CONTAINERS["scheduler"]["args"],
            CONTAINERS["worker"]["args"],
            CONTAINERS["job"]["command"],
        )
    )
    scheduler = [word.replace("0.0.0.0", "127.0.0.1") for word in scheduler]
    scheduler[scheduler.index("--dashboard-address") + 1] = "127.0.0.1:0"
    scheduler += ["--port", str(port)]
    started = [subprocess.Popen(words, **options) for words in (scheduler, worker)]
    try:
        done = subprocess.run(
            job, capture_output=True, text=True, timeout=120, **options
        )
        assert "Error at most" in done.stdout, done.stderr
    finally:
        for process in started:
            process.terminate()
            process.wait()
