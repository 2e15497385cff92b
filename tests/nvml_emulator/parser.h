#ifndef PARSER_H
#define PARSER_H

/* Read every statement of a file into the scenario. Returns 0, or -1 when it cannot be opened. */
int parse_scenario(const char *path);

#endif
