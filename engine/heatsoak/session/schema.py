"""The tables of a session file, every column documented here and nowhere else."""

from __future__ import annotations

from heatsoak.telemetry.sample import READINGS

APPLICATION_ID = 0x48454154
"""`HEAT`: what tells a session file from any other SQLite file."""
VERSION = 2
"""`user_version`; raised with every change of the tables."""
UPGRADES: dict[int, tuple[str, ...]] = {
    1: (
        "ALTER TABLE samples ADD COLUMN power_instant_w REAL",
        "ALTER TABLE samples ADD COLUMN memory_temperature_c REAL",
        "ALTER TABLE samples ADD COLUMN temperature_margin_c REAL",
        "ALTER TABLE verdicts ADD COLUMN cycle TEXT",
    ),
}
"""What makes a file of each earlier version one of the next, on a copy. New readings come last, so
that a row of an earlier version is the beginning of one of today's and can be read as it is."""
META_KEYS = (
    "id", "created_utc", "host", "protocol", "heatsoak_version", "speed", "seed", "state",
)  # fmt: skip
"""What every session says of itself in `meta`."""

TEXT_READINGS = ("throttle_reasons",)
"""Readings stored as text: names joined by `|`, empty when nothing throttles."""
INTEGER_READINGS = ("memory_used_bytes", "pcie_gen", "pcie_width", "pstate")


def _column(reading: str) -> str:
    if reading in TEXT_READINGS:
        return f"{reading} TEXT"
    return f"{reading} {'INTEGER' if reading in INTEGER_READINGS else 'REAL'}"


TABLES = f"""
-- What is known of the session as a whole: id, created_utc, host, protocol, heatsoak_version,
-- speed, seed, provenance, recorder_pid, socket, name, state ('recording' while a recorder owns the
-- file, then the end state), end_reason, log_lines_not_kept.JOB (how many lines of a job's
-- output were dropped from the middle of the table log).
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE devices (
  device_id TEXT PRIMARY KEY,  -- '0', 'cpu', 'synthetic-0'
  uuid TEXT NOT NULL,          -- NVML UUID, 'cpu-HOSTNAME', 'SYNTHETIC-...'
  name TEXT NOT NULL,          -- whole name as the driver says it
  card TEXT,                   -- id of the card profile, or null
  kind TEXT NOT NULL,          -- nvidia, cpu, synthetic
  provenance TEXT NOT NULL,    -- measured, synthetic, imported
  info TEXT NOT NULL           -- JSON: every field of DeviceInfo
);

CREATE TABLE jobs (
  job_id TEXT PRIMARY KEY,
  workload TEXT NOT NULL,
  workload_version INTEGER NOT NULL,
  recipe TEXT NOT NULL,        -- JSON: every field of Recipe
  recipe_hash TEXT NOT NULL,
  mode TEXT NOT NULL,          -- replica, ddp, fsdp, script, synthetic
  unit TEXT NOT NULL,          -- tokens, images, samples
  facts TEXT NOT NULL          -- JSON: what the child said in its hello; {{}} before
);
CREATE TABLE job_devices (
  job_id TEXT NOT NULL, device_id TEXT NOT NULL,
  rank INTEGER NOT NULL,       -- rank of the device within the job
  PRIMARY KEY (job_id, device_id)
) WITHOUT ROWID;

-- One reading of one device; t_s is session time in seconds here and everywhere; a reading is null
-- where the device did not report it. Units are in the names.
CREATE TABLE samples (
  t_s REAL NOT NULL, device_id TEXT NOT NULL, {", ".join(map(_column, READINGS))}
);

-- Progress of a job, at most one row a job and second.
CREATE TABLE steps (
  t_s REAL NOT NULL, job_id TEXT NOT NULL,
  units_done REAL NOT NULL,    -- cumulative, whole job, all ranks
  steps_done INTEGER NOT NULL, -- optimizer steps, cumulative
  loss REAL                    -- training loss, null where none was read
);

CREATE TABLE phases (t_s REAL NOT NULL, job_id TEXT NOT NULL, phase TEXT NOT NULL);

-- For drawing: one reading over one span. owner is a device_id, or a job_id for 'rate' (units/s).
CREATE TABLE rollups (
  span_s INTEGER NOT NULL,     -- 10 or 300
  start_s REAL NOT NULL, owner TEXT NOT NULL, reading TEXT NOT NULL,
  minimum REAL NOT NULL, maximum REAL NOT NULL, mean REAL NOT NULL,
  PRIMARY KEY (span_s, start_s, owner, reading)
) WITHOUT ROWID;

CREATE TABLE events (
  t_s REAL NOT NULL,
  kind TEXT NOT NULL,          -- start, state, disturbed, mark, extend, lost, silent, error, ...
  device_id TEXT, job_id TEXT, -- what it concerns, null for the session
  text TEXT NOT NULL,          -- in words
  data TEXT NOT NULL           -- JSON
);

CREATE TABLE verdicts (
  t_s REAL NOT NULL, device_id TEXT NOT NULL,
  state TEXT NOT NULL, flags TEXT NOT NULL,  -- flags joined by '|'
  reason TEXT NOT NULL,        -- one sentence
  channels TEXT NOT NULL,      -- channels the judgement stands on, joined by '|'
  bounds TEXT NOT NULL,        -- JSON: channel, value, margin, unit, is_ok of each channel
  blocked_by TEXT,             -- the channel that keeps it from steady
  window_start_s REAL, window_s REAL, frozen_at_s REAL,
  time_left_s TEXT,            -- JSON: [low, high], null when nothing can be said
  cycle TEXT                   -- JSON: period_s, channel, swing, unit of a cycle, null without one
);

CREATE TABLE results (
  t_s REAL NOT NULL, device_id TEXT NOT NULL, job_id TEXT NOT NULL,
  data TEXT NOT NULL           -- JSON: the device's entry of heatsoak-result/1
);

-- What was seen of the machine when the run began: one row a topic (host, driver, training,
-- devices, findings), data JSON.
CREATE TABLE environment (key TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID;

-- Written after the measurement, never part of it.
CREATE TABLE annotations (
  created_utc TEXT NOT NULL,
  kind TEXT NOT NULL,          -- name, tag, note, prices
  data TEXT NOT NULL           -- JSON
);

CREATE TABLE log (
  t_s REAL NOT NULL, job_id TEXT NOT NULL,
  stream TEXT NOT NULL,        -- stdout, stderr
  text TEXT NOT NULL           -- one line; a job's first and last lines are kept
);
"""
