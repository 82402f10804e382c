"""Exit codes and environment variables, as `--help-all` lists them; tests compare both with the code."""

from __future__ import annotations

from winml.modelkit.cli import help_layout as layout

EXIT_CODES = {
    0: "Success.",
    1: "The work failed: a crash, a timeout, a failed stage, a limit that cannot be decided.",
    2: "Invalid request: arguments, a missing or invalid file, config or data.",
    3: "Not possible on this machine: provider, device, package, login, permission or disk space is missing.",
    4: "An operator trace was requested and has no usable data.",
    5: "A check failed: a regression, a metric below its limit, unsupported nodes, a rejected review.",
    6: "Partly done: some cells or models failed.",
    70: "A bug in winml.",
    130: "Interrupted with Ctrl-C.",
}

ENVIRONMENT = {
    "WINML_CACHE": "Folder of the cache (default: winml in the platform's cache folder).",
    "WINML_KNOWLEDGE": "Folder of your own findings (default: winml/knowledge in the platform's data folder).",
    "WINML_FEED": "The feed when --feed is not given.",
    "WINML_FEED_USER": "User name for a registry, with WINML_FEED_PASSWORD.",
    "WINML_FEED_PASSWORD": "Password or token for a registry.",
    "WINML_KEY_PASSWORD": "Password of the key that signs a package, when it has one.",
    "WINML_MAX_SAMPLE": "Bytes that the inputs of one run from a file may take (default 512 MiB); see --max-sample.",
    "WINML_INSPECT_TIMEOUT": "Seconds for reading a model or comparing outputs, or none (default: by model size).",
    "WINML_WORK_TIMEOUT": "Seconds for any other step of a command without --timeout, or none (default 12 hours).",
    "WINML_MEMORY_LIMIT": "Memory a worker process may use, such as 8GiB, or none (default: by model and machine).",
    "WINML_SERVE_TOKEN": "Token of winml serve, 16 characters or more (default: a new one at each start).",
    "NO_COLOR": "When set, output has no colour.",
    "TERM": "dumb: output has no colour.",
    "COLUMNS": "Width of the terminal (default: what the terminal reports, or 80).",
    "PYTHONIOENCODING": "On Windows, encoding of pipes and files (default utf-8).",
    "QNN_SDK_ROOT": "Folder of the QAIRT SDK: the compiler qairt and detailed traces of QNN.",
    "GLIBC_TUNABLES": "On Linux, when not set, processes that measure use huge pages.",
    "REGISTRY_AUTH_FILE": "File with logins for registries.",
    "DOCKER_CONFIG": "Folder of docker's config.json with logins for registries (default ~/.docker).",
    "XDG_RUNTIME_DIR": "On Linux, its containers/auth.json has logins for registries.",
    "XDG_CACHE_HOME": "On Linux, the platform's cache folder (default ~/.cache).",
    "XDG_DATA_HOME": "On Linux, the platform's data folder (default ~/.local/share).",
    "XDG_CONFIG_HOME": "On Linux, the platform's folder of settings (default ~/.config), for fish's completions.",
    "LOCALAPPDATA": "On Windows, the platform's folder for both.",
    "HOME": "Your home folder; USERPROFILE on Windows.",
    "TMPDIR": "Folder for temporary files; TEMP and TMP on Windows.",
    "HF_HOME": "Cache and login of Hugging Face; HF_HUB_OFFLINE=1 prevents downloads.",
    "HF_HUB_ETAG_TIMEOUT": "Seconds that the Hugging Face hub has for an answer (default 5, asked twice).",
    "PATH": "Where programs such as az, git, bwrap and those of SDKs are found.",
    "LD_LIBRARY_PATH": "On Linux, folders of libraries for programs of the QAIRT SDK; visible in a sandbox.",
    "PYTHONPATH": "Further folders of Python packages, also for commands that support produce and review run.",
    "COMSPEC": "On Windows, the shell that runs az (default cmd.exe).",
}
"""Every variable a user can set and winml reads, itself or through the library that it uses for it."""

INTERNAL = {
    "WINML_JOB": "The job on a node that a command is part of.",
    "OPENBLAS_NUM_THREADS": "Threads of numpy in a process that forks: none, unless the user says otherwise.",
    "OMP_WAIT_POLICY": "Threads of torch in an export sleep while they wait, unless the user says otherwise.",
}
"""Variables by which winml tells its own processes something."""


def reference_text(width: int) -> str:
    """Both tables, laid out for a width."""
    codes = [(str(code), meaning) for code, meaning in EXIT_CODES.items()]
    column = layout.column_width(ENVIRONMENT, width)
    return "\n".join(
        (
            layout.section("Exit codes", codes, len("130"), width),
            layout.section("Environment variables", ENVIRONMENT.items(), column, width),
        )
    )
