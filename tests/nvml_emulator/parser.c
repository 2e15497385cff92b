/* Reads statements. A word that is not understood ends the process with its line. */
#define _GNU_SOURCE
#include "parser.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "errors.h"
#include "scenario.h"

enum { MAX_TEXT = 512 };

/* Where the parser is, for its complaints. */
static const char *parsed_path;
static int parsed_number;

static void complain(const char *what, const char *word) {
    fprintf(stderr, "nvml emulator: %s:%d: %s: %s\n", parsed_path, parsed_number, what,
            word == NULL ? "(nothing)" : word);
    abort(); /* A scenario that says something else than was meant must not pass for one. */
}

/* Keys whose answer is a text, not a number. */
static const char *const text_keys[] = {"name",        "uuid", "bus",  "serial", "vbios",
                                        "part_number", "gsp",  "nvml", "driver"};

static char *next_word(char **rest) {
    *rest += strspn(*rest, " \t");
    return strsep(rest, " \t");
}

static char *needed_word(char **rest, const char *what) {
    char *word = *rest == NULL ? NULL : next_word(rest);
    if (word == NULL || *word == '\0') complain("a word is missing", what);
    return word;
}

static double number_or(char **rest, double otherwise) {
    double number = otherwise;
    u64 exact;
    int is_exact;
    char *word = *rest == NULL ? NULL : next_word(rest);
    if (word != NULL && *word != '\0' && number_parse(word, &number, &exact, &is_exact) != 0)
        complain("no number", word);
    return number;
}

/* `{n}` becomes the number of the card, so that one statement describes many. */
static void set_text(line_t *line, const char *text) {
    int number = is_mig(line->card) ? mig_parent(line->card) : line->card;
    char *out = line->text, *end = line->text + sizeof line->text - 8;
    while (*text != '\0' && out < end)
        if (strncmp(text, "{n}", 3) == 0) {
            out += sprintf(out, "%d", number);
            text += 3;
        } else {
            *out++ = *text++;
        }
    *out = '\0';
    strcpy(line->words, line->text);
}

static int is_text_key(const char *key) {
    for (size_t i = 0; i < sizeof text_keys / sizeof text_keys[0]; i++)
        if (strcmp(key, text_keys[i]) == 0) return 1;
    return 0;
}

static void parse_card_file(const char *path, int card);

static void parse_answer(line_t *line, char *rest) {
    char *key = needed_word(&rest, "what the card answers");
    const char *text = rest == NULL ? "" : rest + strspn(rest, " \t");
    snprintf(line->key, sizeof line->key, "%s", key);
    set_text(line, text);
    if (strcmp(text, "-") == 0 || is_text_key(key) || strcmp(key, "processes") == 0) return;
    if (value_parse(&line->value, line->words) != 0) complain("no value", text);
    line->has_value = 1;
}

/* FUNCTION CODE [FROM_S [UNTIL_S]] */
static void parse_failure(line_t *line, char *rest) {
    snprintf(line->key, sizeof line->key, "%s", needed_word(&rest, "a function"));
    if (line->verb == FAIL) {
        const char *word = needed_word(&rest, "a code");
        line->code = error_code(word);
        if (line->code < 0) complain("no NVML code", word);
    }
    line->from_s = number_or(&rest, 0.0);
    line->until_s = number_or(&rest, 1e300);
}

/* TYPE DATA [AT_S]; `xid DATA` is an event of type 8. Without an instant it happens now. */
static void parse_event(line_t *line, int is_xid, char *rest) {
    line->numbers[0] = is_xid ? 8 : strtoull(needed_word(&rest, "an event type"), NULL, 0);
    line->numbers[1] = strtoull(needed_word(&rest, "the data of an event"), NULL, 0);
    line->from_s = number_or(&rest, scenario_now_s());
}

/* compute|graphics|mps PID BYTES [SM_PCT]; PID may be `self`, BYTES `?` when not known. */
static void parse_process(line_t *line, char *rest) {
    snprintf(line->key, sizeof line->key, "%s", needed_word(&rest, "compute, graphics or mps"));
    const char *pid = needed_word(&rest, "a pid");
    line->numbers[0] = strcmp(pid, "self") == 0 ? (u64)getpid() : strtoull(pid, NULL, 10);
    rest = rest == NULL ? NULL : rest + strspn(rest, " \t");
    if (rest != NULL && *rest == '?') {
        needed_word(&rest, "bytes");
        line->numbers[1] = ~0ull;
    } else {
        line->numbers[1] = (u64)number_or(&rest, 0.0);
    }
    line->numbers[2] = (u64)number_or(&rest, 0.0);
}

static line_t *add(const char *verb) {
    line_t *line = scenario_add();
    if (line == NULL) complain("too many statements", verb);
    return line;
}

static void parse_statement(line_t *line, const char *verb, char *rest) {
    line_t *stored = add(verb); /* in its place first: `value` points into it */
    *stored = *line;
    char text[MAX_TEXT];
    snprintf(text, sizeof text, "%s", rest == NULL ? "" : rest);
    if (stored->verb == CARD || stored->verb == PAIR)
        parse_answer(stored, text);
    else if (stored->verb == EVENT)
        parse_event(stored, strcmp(verb, "xid") == 0, text);
    else if (stored->verb == PROCESS)
        parse_process(stored, text);
    else
        parse_failure(stored, text);
    stored->hash = scenario_hash(stored->key);
}

static int parse_id(const char *word) {
    if (strcmp(word, "*") == 0) return ANY;
    if (strcmp(word, "system") == 0) return SYSTEM;
    char *end = NULL;
    long card = strtol(word, &end, 10), index = 0;
    if (end != word && *end == '.') index = strtol(end + 1, &end, 10);
    if (end == word || *end != '\0' || card < 0 || card >= MAX_CARDS || index >= MAX_MIG)
        complain("no card", word);
    return strchr(word, '.') == NULL ? (int)card : mig_id((int)card, (int)index);
}

/* Run a statement for `0`, `0.1` (MIG device 1 of card 0), `0-7`, `0,2`, `*` or `system`. */
static void parse_for_cards(line_t *line, const char *verb, char *cards, char *rest) {
    char *left = NULL;
    for (char *part = strtok_r(cards, ",", &left); part; part = strtok_r(NULL, ",", &left)) {
        char *last = strchr(part, '-');
        if (last != NULL) *last++ = '\0';
        int from = parse_id(part), to = last == NULL ? from : parse_id(last);
        for (line->card = from; line->card <= to; line->card++)
            if (line->verb == CARD && strncmp(rest, "like ", 5) == 0)
                parse_card_file(rest + 5, line->card);
            else
                parse_statement(line, verb, rest);
    }
}

static void parse_setting(const char *verb, char *rest) {
    pace_t *pace = scenario_pace();
    if (strcmp(verb, "epoch") == 0) {
        pace->has_epoch = 1;
        pace->epoch_s = strtod(rest, NULL);
        return;
    }
    if (strcmp(verb, "now") == 0) {
        pace->stands_still = 1;
        pace->still_s = strtod(rest, NULL);
        return;
    }
    if (strcmp(verb, "speed") == 0) {
        pace->speed = strtod(rest, NULL);
        return;
    }
    if (strcmp(verb, "without") == 0) return; /* emulator.py leaves the symbol out of the library */
    line_t *line = add(verb);
    memset(line, 0, sizeof *line);
    line->verb = SETTING;
    line->card = SYSTEM;
    snprintf(line->key, sizeof line->key, "%s", verb);
    snprintf(line->text, sizeof line->text, "%s", rest);
    line->hash = scenario_hash(line->key);
    if (strcmp(verb, "init") == 0 && (line->code = error_code(rest)) < 0)
        complain("no NVML code", rest);
}

static const struct {
    const char *word;
    verb_t verb;
} verbs[] = {
    {"card", CARD},       {"pair", PAIR},       {"fail", FAIL},       {"hang", HANG},
    {"slow", SLOW},       {"event", EVENT},     {"xid", EVENT},       {"process", PROCESS},
    {"init", SETTING},    {"driver", SETTING},  {"nvml", SETTING},    {"cuda", SETTING},
    {"epoch", SETTING},   {"now", SETTING},     {"speed", SETTING},   {"without", SETTING},
};

static void parse(char *text) {
    char *rest = text;
    char *word = next_word(&rest);
    if (*word == '\0') return;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].word, word) != 0) continue;
        if (verbs[i].verb == SETTING) {
            parse_setting(word, rest == NULL ? text + strlen(text) : rest);
            return;
        }
        line_t line = {.verb = verbs[i].verb, .other = NO_CARD};
        char *cards = needed_word(&rest, "a card");
        if (line.verb == PAIR) line.other = parse_id(needed_word(&rest, "the other card"));
        if (rest == NULL) complain("a statement ends early", word);
        parse_for_cards(&line, word, cards, rest + strspn(rest, " \t"));
        return;
    }
    complain("no statement", word);
}

/* Give every line of a file, without comments and line end, to `use`. */
static int read_lines(const char *path, void (*use)(char *, int), int card) {
    FILE *file = fopen(path, "re");
    if (file == NULL) return -1;
    const char *outer_path = parsed_path;
    int outer_number = parsed_number;
    char text[MAX_TEXT];
    parsed_path = path;
    for (parsed_number = 1; fgets(text, sizeof text, file) != NULL; parsed_number++) {
        size_t length = strcspn(text, "#\r\n");
        while (length > 0 && strchr(" \t", text[length - 1]) != NULL) length--;
        text[length] = '\0';
        use(text, card);
    }
    fclose(file);
    parsed_path = outer_path;
    parsed_number = outer_number;
    return 0;
}

static void use_statement(char *text, int card) {
    (void)card;
    parse(text);
}

static void use_answer(char *text, int card) {
    line_t line = {.verb = CARD, .card = card, .other = NO_CARD};
    if (text[strspn(text, " \t")] != '\0') parse_statement(&line, "card", text);
}

/* Take over every answer of models/NAME.card, which holds one `KEY VALUE` a line. */
static void parse_card_file(const char *name, int card) {
    char path[MAX_TEXT];
    const char *folder = getenv("NVML_EMULATOR_MODELS");
    snprintf(path, sizeof path, "%s/%s.card", folder == NULL ? "." : folder, name);
    if (read_lines(path, use_answer, card) != 0) complain("no such model", path);
}

int parse_scenario(const char *path) { return read_lines(path, use_statement, NO_CARD); }
