"""What `az` with its extension azure-devops was seen or is documented to do, without Azure.

The first word of the file `mood` changes it:
  logged-out      no account
  no-extension    the extension is missing
  invalid-grant   the login has expired
  refreshing      an informational line, and exit 1
  refreshing-once the same at the next publish only
  expires         the login has expired when something is published, not before
  tool N          ArtifactTool ends with return code N
  hang            the publish never ends, and has a child that does not either
  hang-after      the same, after the version was made
  mute            the same as `hang`, and `az rest` never answers either
  cut             pages of two items, whatever was asked for
  conflict        `az rest` is answered with 409
  garbled         `az rest` answers with something else than JSON
  lies            downloads deliver other bytes
  foreign         downloads deliver no list of files
  ctrl-c          the way the extension ends when it is interrupted
"""

import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(os.environ["STAND_IN_AZ"])
MOOD = (ROOT / "mood").read_text()
LOGIN = (
    "ERROR: Failed to update Universal Packages tooling.\n"
    " Before you can run Azure DevOps commands, you need to run the login command(az login if using AAD/MSA identity "
    "else az devops login if using PAT token) to setup credentials.  Please see https://aka.ms/azure-devops-cli-auth"
)
BAD_VERSION = (
    "The package version provided is invalid. Universal package versions must be lowercase SemVer 2.0 versions without "
    "build metadata. The package version must be under 128 characters, and major/minor/patch must each be less than or "
    "equal to 2147483647."
)


def fail(code: int, *lines: str) -> None:
    sys.stderr.write("\n".join(lines) + "\n")
    sys.exit(code)


def answer(value: object) -> None:
    sys.stdout.write(json.dumps(value))


def option(name: str) -> str | None:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


def tool_failed(code: int, *lines: str) -> None:
    """ArtifactTool's own lines, then the line of the extension, which repeats all arguments."""
    arguments = ["/x/artifacttool", "universal", sys.argv[3], *sys.argv[4:], "--patvar", "AZURE_DEVOPS_EXT_PAT"]
    echo = f"ERROR: Process {arguments!r} with PID 4711 exited with return code {code}"
    fail(1, *(f"ERROR: {line}" for line in lines), echo)


def account() -> None:
    if MOOD == "logged-out":
        fail(1, "ERROR: Please run 'az login' to setup account.")
    answer({"user": {"name": "somebody"}})


def extension() -> None:
    installed = ROOT / "installed-extension"
    if sys.argv[2] == "add":
        installed.touch()
        return
    if MOOD == "no-extension" and not installed.exists():
        fail(1, "ERROR: The extension azure-devops is not installed.")
    answer({"name": "azure-devops", "version": "1.0.7"})


def rest() -> None:
    if any("&" in word for word in sys.argv):
        fail(1, "ERROR: a batch file would have lost everything after the first &")
    if MOOD in ("logged-out", "invalid-grant"):
        fail(1, "ERROR: AADSTS70043: invalid_grant: the refresh token has expired" if MOOD == "invalid-grant"
             else "ERROR: Please run 'az login' to setup account.")  # fmt: skip
    if MOOD == "mute":
        time.sleep(600)
    if MOOD == "conflict":
        fail(1, 'ERROR: Conflict({"message": "the feed is being changed"})')
    if MOOD == "garbled":
        sys.stdout.write("<html>")
        return
    words = sys.argv[sys.argv.index("--uri-parameters") + 1 : sys.argv.index("--output")]
    query = dict(word.split("=", 1) for word in words)
    uri = option("--uri") or ""
    if "/Feeds/gone/" in uri:
        fail(1, 'ERROR: Not Found({"message": "The feed with ID \'gone\' doesn\'t exist."})')
    by_id = re.fullmatch(r".*/packages/id-([^/]+)/versions", uri)
    feed = ROOT / "feed"
    if by_id:
        folders = sorted((feed / by_id[1]).iterdir())
        items = [
            {"version": v.name, "normalizedVersion": v.name, "isDeleted": (v / ".deleted").exists()} for v in folders
        ]
    else:
        wanted = query.get("normalizedPackageName")
        names = [p.name for p in sorted(feed.iterdir()) if wanted in (None, p.name)]
        items = [{"id": f"id-{n}", "normalizedName": n, "name": n, "protocolType": "UPack"} for n in names]
    top, skip = int(query.get("$top", 25)), int(query.get("$skip", 0))
    page = items[skip : skip + (min(top, 2) if MOOD == "cut" else top)]
    answer({"count": len(page), "value": page})


def check_call() -> None:
    needed = ["--feed", "--name", "--version", "--path", *(["--description"] if MOOD == "wants-more" else [])]
    missing = [name for name in needed if option(name) is None]
    if missing:
        fail(2, f"ERROR: the following arguments are required: {', '.join(missing)}")
    if option("--project") and option("--scope") != "project":
        fail(1, "ERROR: --scope 'project' is required when specifying a value in --project")
    if MOOD == "logged-out":
        fail(1, LOGIN)
    if MOOD == "invalid-grant" or (MOOD == "expires" and sys.argv[3] == "publish"):
        fail(1, "ERROR: Failed to refresh: invalid_grant: AADSTS700082: The refresh token has expired.")
    if MOOD == "refreshing-once":
        (ROOT / "mood").write_text("")
    if MOOD in ("refreshing", "refreshing-once"):
        fail(1, "INFO: Refreshing token for refresh token cache", "ERROR: The connection was reset.")
    if MOOD == "ctrl-c":
        fail(1, "TypeError: ExternalToolInvoker._sigint_handler() takes 1 positional argument but 3 were given")
    if MOOD.startswith("tool "):
        tool_failed(int(MOOD.split()[1]), "ApplicationInsightsTelemetrySender will correlate events")
    if option("--feed") == "gone":
        tool_failed(19, "The feed with ID 'gone' doesn't exist.")


def hang() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (ROOT / "hanging").write_text(f"{os.getpid()} {child.pid}")
    time.sleep(600)


def publish() -> None:
    check_call()
    version = option("--version") or ""
    if version != version.lower() or "+" in version or len(version) > 127:
        tool_failed(20, BAD_VERSION)
    if MOOD in ("hang", "mute"):
        hang()
    place = ROOT / "feed" / (option("--name") or "") / version
    place.parent.mkdir(exist_ok=True)
    coming = place.with_name(f".coming-{os.getpid()}")
    shutil.copytree(option("--path") or "", coming)
    try:
        coming.rename(place)
    except OSError:
        shutil.rmtree(coming)
        tool_failed(17)
    if MOOD == "hang-after":
        hang()
    answer({"Description": None, "ManifestId": "00", "SuperRootId": "00", "Version": version})


def download() -> None:
    check_call()
    place = ROOT / "feed" / (option("--name") or "") / (option("--version") or "")
    if not place.is_dir() or (place / ".deleted").exists():
        tool_failed(21, "Can't find the package.")
    for path in place.rglob("*"):
        name = path.relative_to(place).as_posix()
        wanted = fnmatch.fnmatchcase(name, option("--file-filter") or "*")
        if path.is_file() and wanted and not (MOOD == "foreign" and name == "winml_content.json"):
            to = pathlib.Path(option("--path") or "") / name
            to.parent.mkdir(parents=True, exist_ok=True)
            content = path.read_bytes()
            to.write_bytes(content[::-1] + b"!" if MOOD == "lies" and name != "winml_content.json" else content)
    answer({"Description": None})


with (ROOT / "calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\n")
COMMANDS = {"account": account, "extension": extension, "rest": rest}
if sys.argv[1] == "artifacts":
    {"publish": publish, "download": download}[sys.argv[3]]()
else:
    COMMANDS[sys.argv[1]]()
