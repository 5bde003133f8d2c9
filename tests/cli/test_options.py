import pytest
from click.testing import CliRunner

from dsel.cli import main


@pytest.mark.parametrize(
    "beside",
    [
        ["--workers", "0"],
        ["--scheduler", "tcp://127.0.0.1:1"],
        # Silently left out, they would leave somebody believing in encryption.
        ["--tls-ca", "ca.pem", "--tls-cert", "cert.pem", "--tls-key", "key.pem"],
    ],
)
def test_connected__takes_nothing_about_workers_beside_a_configuration(
    tmp_path, beside
):
    path = tmp_path / "cluster.yaml"
    path.write_text("local: {workers: 1}\n")
    found = CliRunner().invoke(
        main, ["demo", "--json", "--cluster", str(path), *beside]
    )

    assert found.exit_code == 2
    assert "--cluster stands alone" in found.output
