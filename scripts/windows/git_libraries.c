/* libiconv-2.dll and libpcre2-8-0.dll, which the git of the package index wants and no package for Windows brings.
 *
 * git asks them for texts in other encodings than UTF-8 and for Perl's regular expressions. It uses neither here; both
 * answer that they cannot.
 */
#define EXPORT __declspec(dllexport)

EXPORT void *libiconv_open(const char *to, const char *from) { (void)to; (void)from; return (void *)-1; }
EXPORT void *libiconv(void) { return (void *)-1; }
EXPORT int libiconv_close(void *descriptor) { (void)descriptor; return 0; }

#define NOTHING(name) EXPORT void *pcre2_##name##_8(void) { return 0; }
NOTHING(code_free)
NOTHING(compile)
NOTHING(compile_context_create)
NOTHING(compile_context_free)
NOTHING(config)
NOTHING(general_context_create)
NOTHING(general_context_free)
NOTHING(get_error_message)
NOTHING(get_ovector_pointer)
NOTHING(jit_compile)
NOTHING(jit_match)
NOTHING(maketables)
NOTHING(maketables_free)
NOTHING(match)
NOTHING(match_data_create_from_pattern)
NOTHING(match_data_free)
NOTHING(pattern_info)
NOTHING(set_character_tables)
