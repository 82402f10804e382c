/* A stand-in for Microsoft.Windows.AI.MachineLearning.dll, which needs a real Windows: the execution providers that it
   offers are lines `name|version|state|library` of the file in WINML_TEST_CATALOG, state 0 ready, 1 not ready, 2 not
   present. Making one ready is noted in a file beside it, `<catalog>.<name>`, and what was not present before it in
   `<catalog>.log`, so that tests see a download. The package `windowsml` above it is the real one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#define EXPORT __declspec(dllexport)
#define MOST 16

typedef struct {
    char name[128], version[64], library[512];
    int state;
} Provider;

typedef struct {
    Provider providers[MOST];
    int count;
} Catalog;

typedef struct {
    const char *name, *version, *family, *library, *root;
    int state, certification;
} Info;

typedef struct Async {
    void *context;
    void (*callback)(struct Async *);
    void (*progress)(struct Async *, double);
} Async;

typedef BOOL (*Visit)(Provider *, const Info *, void *);

static char *place(char *path, const char *ending) {
    const char *catalog = getenv("WINML_TEST_CATALOG");
    snprintf(path, 1024, "%s%s", catalog ? catalog : "", ending);
    return path;
}

EXPORT HRESULT WinMLEpCatalogCreate(Catalog **made) {
    char path[1024], line[1024];
    FILE *file = fopen(place(path, ""), "r");
    if (!file) return HRESULT_FROM_WIN32(ERROR_FILE_NOT_FOUND);
    Catalog *catalog = calloc(1, sizeof *catalog);
    while (catalog->count < MOST && fgets(line, sizeof line, file)) {
        Provider *p = &catalog->providers[catalog->count];
        if (sscanf(line, "%127[^|]|%63[^|]|%d|%511[^\r\n]", p->name, p->version, &p->state, p->library) != 4) continue;
        char ending[160];
        snprintf(ending, sizeof ending, ".%s", p->name);
        if (GetFileAttributesA(place(path, ending)) != INVALID_FILE_ATTRIBUTES) p->state = 0;
        catalog->count++;
    }
    fclose(file);
    *made = catalog;
    return S_OK;
}

EXPORT void WinMLEpCatalogRelease(Catalog *catalog) { free(catalog); }

EXPORT HRESULT WinMLEpCatalogEnumProviders(Catalog *catalog, Visit visit, void *context) {
    for (int i = 0; i < catalog->count; i++) {
        Provider *p = &catalog->providers[i];
        Info info = {p->name, p->version, "Stand.In_8wekyb3d8bbwe", p->library, "C:\\", p->state, 1};
        if (!visit(p, &info, context)) break;
    }
    return S_OK;
}

static const char *of(const Provider *p, char what) {
    switch (what) {
        case 'n': return p->name;
        case 'v': return p->version;
        case 'l': return p->state == 0 ? p->library : "";
        case 'f': return "Stand.In_8wekyb3d8bbwe";
        default: return "C:\\";
    }
}

#define TEXT_PROPERTY(NAME, WHAT)                                                           \
    EXPORT HRESULT WinMLEpGet##NAME##Size(const Provider *p, size_t *size) {                \
        *size = strlen(of(p, WHAT)) + 1;                                                    \
        return S_OK;                                                                        \
    }                                                                                       \
    EXPORT HRESULT WinMLEpGet##NAME(const Provider *p, size_t size, char *text, size_t *n) { \
        *n = snprintf(text, size, "%s", of(p, WHAT)) + 1;                                   \
        return S_OK;                                                                        \
    }

TEXT_PROPERTY(Name, 'n')
TEXT_PROPERTY(Version, 'v')
TEXT_PROPERTY(LibraryPath, 'l')
TEXT_PROPERTY(PackageFamilyName, 'f')
TEXT_PROPERTY(PackageRootPath, 'r')

EXPORT HRESULT WinMLEpGetReadyState(const Provider *p, int *state) {
    *state = p->state;
    return S_OK;
}

EXPORT HRESULT WinMLEpGetCertification(const Provider *p, int *certification) {
    *certification = 1;
    return S_OK;
}

static void write(const char *ending, const char *line) {
    char path[1024];
    FILE *file = fopen(place(path, ending), "a");
    if (!file) return;
    fprintf(file, "%s\n", line);
    fclose(file);
}

EXPORT HRESULT WinMLEpEnsureReady(Provider *p) {
    char ending[160];
    if (p->state == 2) write(".log", p->name);
    snprintf(ending, sizeof ending, ".%s", p->name);
    if (p->state != 0) write(ending, "ready");
    p->state = 0;
    return S_OK;
}

EXPORT HRESULT WinMLEpEnsureReadyAsync(Provider *p, Async *block) {
    for (int i = 0; block->progress && i <= 4; i++) block->progress(block, i / 4.0);
    HRESULT result = WinMLEpEnsureReady(p);
    if (block->callback) block->callback(block);
    return result;
}

EXPORT HRESULT WinMLAsyncGetStatus(Async *block, BOOL wait) { return S_OK; }
EXPORT HRESULT WinMLAsyncCancel(Async *block) { return S_OK; }
EXPORT void WinMLAsyncClose(Async *block) {}
