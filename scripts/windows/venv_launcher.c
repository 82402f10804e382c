/* The python.exe of a virtual environment on Windows, as CPython's PC/launcher.c has it: it starts the interpreter that
   pyvenv.cfg names as a child in a job of its own, waits, and hands on its exit code. The embeddable Python lacks it. */
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>
#include <windows.h>

#define LONGEST 32768

static int fail(const wchar_t *what)
{
    fwprintf(stderr, L"venv launcher: %ls (error %lu)\n", what, GetLastError());
    return 101;
}

/* Cut the last part off a path. */
static void parent(wchar_t *path)
{
    wchar_t *last = wcsrchr(path, L'\\');
    if (last)
        *last = 0;
}

/* The value of `home` in the pyvenv.cfg above `program`. */
static int read_home(const wchar_t *program, wchar_t *home)
{
    wchar_t path[LONGEST];
    wchar_t line[LONGEST];
    wcscpy(path, program);
    parent(path);
    parent(path);
    wcscat(path, L"\\pyvenv.cfg");
    FILE *file = _wfopen(path, L"r, ccs=UTF-8");
    if (!file)
        return 0;
    int found = 0;
    while (!found && fgetws(line, LONGEST, file)) {
        wchar_t *value = wcschr(line, L'=');
        if (wcsncmp(line, L"home", 4) == 0 && value) {
            value++;
            while (*value == L' ')
                value++;
            value[wcscspn(value, L"\r\n")] = 0;
            wcscpy(home, value);
            found = 1;
        }
    }
    fclose(file);
    return found;
}

/* The command line after its first word. */
static const wchar_t *arguments(void)
{
    const wchar_t *line = GetCommandLineW();
    int quoted = 0;
    for (; *line && (quoted || (*line != L' ' && *line != L'\t')); line++)
        if (*line == L'"')
            quoted = !quoted;
    return line;
}

static BOOL WINAPI leave_to_the_child(DWORD kind)
{
    (void)kind;
    return TRUE;
}

int wmain(void)
{
    static wchar_t program[LONGEST], base[LONGEST], command[2 * LONGEST];
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {0};
    STARTUPINFOW start = {0};
    PROCESS_INFORMATION child = {0};
    DWORD code = 1;

    GetModuleFileNameW(NULL, program, LONGEST);
    if (!read_home(program, base))
        return fail(L"no home in pyvenv.cfg");
    wcscat(base, wcsrchr(program, L'\\'));
    swprintf(command, 2 * LONGEST, L"\"%ls\"%ls", base, arguments()); /* the interpreter tells its base by the first word */

    HANDLE job = CreateJobObjectW(NULL, NULL);
    limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK;
    if (!job || !SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits, sizeof limits))
        return fail(L"no job");
    SetConsoleCtrlHandler(leave_to_the_child, TRUE);
    SetEnvironmentVariableW(L"__PYVENV_LAUNCHER__", program);
    start.cb = sizeof start;
    start.dwFlags = STARTF_USESTDHANDLES;
    HANDLE *streams[] = {&start.hStdInput, &start.hStdOutput, &start.hStdError};
    DWORD names[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
    for (int i = 0; i < 3; i++)
        DuplicateHandle(GetCurrentProcess(), GetStdHandle(names[i]), GetCurrentProcess(), streams[i], 0, TRUE,
                        DUPLICATE_SAME_ACCESS);
    if (!CreateProcessW(base, command, NULL, NULL, TRUE, 0, NULL, NULL, &start, &child))
        return fail(L"cannot start the interpreter");
    AssignProcessToJobObject(job, child.hProcess);
    CloseHandle(child.hThread);
    WaitForSingleObject(child.hProcess, INFINITE);
    if (!GetExitCodeProcess(child.hProcess, &code))
        return fail(L"no exit code");
    return (int)code;
}
