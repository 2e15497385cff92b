"""Logs of other tools: what they tell is read, what they do not tell stays absent."""

from __future__ import annotations

import itertools
import random

import pytest

from heatsoak.errors import UsageError
from heatsoak.session import importing
from heatsoak.session.access import reading
from heatsoak.session.codec import device_of, sample_of
from heatsoak.session.importing import Options, import_log, understand
from heatsoak.session.rejudge import judge_file

QUERY = "timestamp, index, power.draw [W], temperature.gpu, clocks.sm [MHz], memory.used [MiB]"


@pytest.fixture
def sessions(tmp_path):
    """sessions(content, **options) -> (understood, a list of samples and devices a recording)."""

    count = itertools.count()

    def read(content, **options):
        log = tmp_path / "log.txt"
        log.write_bytes(content if isinstance(content, bytes) else content.encode())
        out = tmp_path / f"out{next(count)}.heatsoak"
        found, paths = import_log(log, Options(**options), out)
        recordings = []
        for path in paths:
            with reading(path) as connection:
                rows = connection.execute("SELECT * FROM samples ORDER BY rowid").fetchall()
                infos = connection.execute("SELECT info FROM devices ORDER BY rowid").fetchall()
            recordings.append(([sample_of(row) for row in rows], [device_of(i) for (i,) in infos]))
        return found, recordings

    return read


def query(rows, header=QUERY, end="\n"):
    return end.join([header, *rows]) + end


def at(second, index=0, power="250.10 W", rest="61, 1800 MHz, 1024 MiB"):
    return f"2025/03/01 10:00:{second:02d}.000, {index}, {power}, {rest}"


def test_h1_torn_and_foreign_records_are_skipped_and_counted(sessions):
    rows = [at(0), "Killed", at(1), "2025/03/01 10:", "a,b,c,d,e,f,g,h,i", at(2)]
    found, [(samples, _)] = sessions(query(rows) + at(3)[:30])
    assert [s.t_s for s in samples] == [0.0, 1.0, 2.0]
    assert sum(found.skipped.values()) == 4
    assert found.skipped["a last line that was cut off"] == 1
    assert any("left out: 1 a last line that was cut off" in words for words in found.words())


def test_h2_every_reading_of_the_log_is_in_the_session(sessions):
    names = (
        "timestamp, index, uuid, name, driver_version, power.draw [W], power.draw.instant [W], "
        "temperature.gpu, temperature.memory, clocks.current.sm [MHz], "
        "clocks.current.memory [MHz], "
        "utilization.gpu [%], memory.used [MiB], memory.total [MiB], fan.speed [%], "
        "enforced.power.limit [W], pstate, pcie.link.gen.current, pcie.link.width.current, "
        "clocks_event_reasons.active"
    )
    row = (
        "2025/03/01 10:00:00.000, 3, GPU-1a, NVIDIA L40S, 570.1, 250.1 W, 260.5 W, 61, 70, "
        "1800 MHz, 9001 MHz, 98 %, 1024 MiB, 46068 MiB, 40 %, 350.00 W, P2, 4, 16, "
        "0x0000000000000004"
    )
    _, [([sample, _], [info])] = sessions(query([row, row], names))
    assert (sample.power_w, sample.power_instant_w) == (250.1, 260.5)
    assert (sample.temperature_c, sample.memory_temperature_c) == (61, 70)
    assert (sample.sm_clock_mhz, sample.mem_clock_mhz) == (1800, 9001)
    assert (sample.utilization_pct, sample.fan_pct, sample.power_limit_w) == (98, 40, 350)
    assert sample.memory_used_bytes == 1024 * 1024**2
    assert (sample.pstate, sample.pcie_gen, sample.pcie_width) == (2, 4, 16)
    assert sample.throttle_reasons == ("sw_power_cap",)
    assert (info.name, info.device_id, info.driver_version) == ("NVIDIA L40S", "GPU-1a", "570.1")
    assert info.card == "l40s"
    assert info.provenance == "imported"
    assert (info.memory_total_bytes, info.power_limit_w) == (46068 * 1024**2, 350)


def test_h3_utf_16_with_a_mark_and_half_a_last_line(sessions):
    text = query([at(0), at(1)], end="\r\n") + at(2)[:-9]
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        data = text.encode(encoding)
        found, [(samples, _)] = sessions(data[:-1])
        assert [s.power_w for s in samples] == [250.1, 250.1]
        assert found.skipped == {"a last line that was cut off": 1}


def test_h4_a_header_before_every_row(sessions):
    text = "".join(query([at(second)]) for second in range(5))
    found, [(samples, _)] = sessions(text)
    assert [s.t_s for s in samples] == [0, 1, 2, 3, 4]
    assert found.skipped == {"repeated headers": 4}


def test_h5_headerless_interleaved_rows_without_times(sessions):
    rows = "".join(f"{i}, {200 + i + 10 * k} W, {50 + i}\n" for k in range(3) for i in range(4))
    columns = ("index", "power.draw", "temperature.gpu")
    with pytest.raises(UsageError, match="--format"):
        sessions(rows)
    with pytest.raises(UsageError, match="--period"):
        sessions(rows, format="nvidia-smi-csv", columns=columns)
    _, [(samples, infos)] = sessions(rows, format="nvidia-smi-csv", columns=columns, period_s=2.0)
    assert [info.device_id for info in infos] == ["0", "1", "2", "3"]
    of_two = [(s.t_s, s.power_w, s.temperature_c) for s in samples if s.device_id == "2"]
    assert of_two == [(0.0, 202, 52), (2.0, 212, 52), (4.0, 222, 52)]
    late = "".join(f"0, {200 + k} W\n" for k in range(99)) + "0, 1 W\n1, 2 W\n0, 3 W\n1, 4 W\n"
    _, [(samples, _)] = sessions(late, format="nvidia-smi-csv", columns=columns[:2], period_s=1.0)
    assert [(s.t_s, s.power_w) for s in samples if s.device_id == "1"] == [(99, 2), (100, 4)]


def test_h5_a_headerless_log_with_times_asks_for_its_columns(sessions):
    rows = "2025/03/01 10:00:00.000, 50 W\n2025/03/01 10:00:05.000, 51 W\n"
    with pytest.raises(UsageError, match="--columns"):
        sessions(rows)
    found, [(samples, _)] = sessions(rows, columns=("timestamp", "power.draw"))
    assert [(s.t_s, s.power_w) for s in samples] == [(0, 50), (5, 51)]
    assert found.format == "nvidia-smi-csv"


DMON = "# gpu    pwr  gtemp  mtemp     sm    mem\n# Idx      W      C      C      %      %\n"


def test_h6_dmon_prints_its_header_again_and_has_no_time(sessions):
    text = (DMON + "    0    203     61      -     98     40\n" * 3) * 2
    text += "    0    203     61     98     40\n"  # One is missing; nobody knows which.
    with pytest.raises(UsageError, match="--period"):
        sessions(text)
    found, [(samples, _)] = sessions(text, period_s=1.0)
    assert found.format == "nvidia-smi-dmon"
    assert found.skipped["rows that do not fit"] == 1
    assert [s.t_s for s in samples] == [0, 1, 2, 3, 4, 5]
    assert {(s.power_w, s.temperature_c, s.utilization_pct) for s in samples} == {(203, 61, 98)}
    assert {s.memory_temperature_c for s in samples} == {None}
    assert {s.mem_clock_mhz for s in samples} == {None}


def test_h7_dmon_with_date_and_eight_cards_goes_by_its_header(sessions):
    head = (
        "#Date       Time        gpu   pviol  tviol    pwr  gtemp    fb   ccpm  pclk\n"
        "#YYYYMMDD   HH:MM:SS    Idx       %   bool      W      C    MB     MB   MHz\n"
    )
    rows = "".join(
        f" {when}    {card}  7  0  {300 + card}  6{card}  512  0  1700\n"
        for when in ("20250301 23:59:58", "20250301 23:59:59", "20250302 00:00:00")
        for card in range(8)
    )
    _, [(samples, infos)] = sessions(head + rows)
    assert len(infos) == 8
    five = [s for s in samples if s.device_id == "5"]
    assert [s.t_s for s in five] == [0, 1, 2]
    assert {(s.power_w, s.temperature_c, s.sm_clock_mhz) for s in five} == {(305, 65, 1700)}
    assert five[0].memory_used_bytes == 512 * 1024**2


def test_h7_times_of_day_pass_midnight(sessions):
    head = "#Time        gpu    pwr\n#HH:MM:SS    Idx      W\n"
    rows = "".join(f" {when}  0  203\n" for when in ("23:59:58", "23:59:59", "00:00:01"))
    _, [(samples, _)] = sessions(head + rows)
    assert [s.t_s for s in samples] == [0, 1, 3]


def hwinfo(encoding, header, *rows):
    return ("Date,Time," + header + ",\r\n" + "".join(r + ",\r\n" for r in rows)).encode(encoding)


def test_h8_hwinfo_marks_footers_and_names_that_occur_twice(sessions):
    header = '"GPU Clock [MHz]","CPU Package [°C]","GPU Clock [MHz]","GPU Power [W]"'
    rows = [
        "1.3.2025,10:00:00.120,400,55,2500,\"301,5\"",
        "1.3.2025,10:00:02.120,410,55,2510,301.5",
        "Date,Time," + header,
        ",,GPU [#0]: one,CPU,GPU [#1]: two,GPU [#1]: two",
    ]  # fmt: skip
    for encoding in ("utf-8-sig", "latin-1"):
        found, [(samples, infos)] = sessions(hwinfo(encoding, header, *rows))
        assert found.format == "hwinfo"
        assert [i.device_id for i in infos] == ["0", "1"]
        assert [s.sm_clock_mhz for s in samples if s.device_id == "1"] == [2500, 2510]
        assert {s.power_w for s in samples} == {None}  # Nobody can say whose.
        assert found.skipped == {"repeated headers": 1, "rows without a time": 1}
    header = '"GPU Power [W]","GPU Temperature [°C]"'
    one = hwinfo("latin-1", header, '1.3.2025,10:00:00,"301,5",61',
                 "1.3.2025,10:00:02,302,62")  # fmt: skip
    _, [(samples, _)] = sessions(one)
    assert [(s.power_w, s.temperature_c) for s in samples] == [(301.5, 61), (302, 62)]
    chinese = hwinfo("utf-8-sig", "CPU 温度 [°C],GPU 温度 [°C]", "1.3.2025,10:00:00,90,61",
                     "1.3.2025,10:00:02,90,62")  # fmt: skip
    _, [(samples, _)] = sessions(chinese)
    assert [s.temperature_c for s in samples] == [61, 62]


GPU_Z = "        Date        , GPU Clock [MHz] , GPU Temperature [°C] , Board Power Draw [W] ,\n"


def test_h9_gpu_z_padded_latin_1_and_sessions_days_apart(sessions):
    def rows(day):
        return "".join(
            f"2025-03-{day:02d} 14:00:0{n} ,       1350,5  ,      6{n}.8   ,     15,9 ,\n"
            for n in range(3)
        )

    text = (GPU_Z + rows(1)).replace("1350,5", "1350.5").replace("15,9", "15.9") * 1
    text += text.replace("03-01", "03-05")
    found, recordings = sessions(text.encode("latin-1"))
    assert found.format == "gpu-z"
    assert len(recordings) == 2
    for samples, _ in recordings:
        assert [s.t_s for s in samples] == [0, 1, 2]
        assert [s.temperature_c for s in samples] == [60.8, 61.8, 62.8]
        assert {(s.sm_clock_mhz, s.power_w) for s in samples} == {(1350.5, 15.9)}
    localized = (GPU_Z + rows(1)).replace(" ,", " ;")
    _, [(samples, _)] = sessions(localized.encode("latin-1"))
    assert {(s.sm_clock_mhz, s.power_w) for s in samples} == {(1350.5, 15.9)}


def test_h10_a_day_long_gap_parts_recordings_and_one_wild_time_does_not(sessions):
    rows = [at(0), at(1), at(2).replace("03/01", "03/02"), at(3), at(4)]
    found, [(samples, _)] = sessions(query(rows))
    assert [s.t_s for s in samples] == [0, 1, 3, 4]
    assert found.skipped == {"rows whose time leaps alone": 1}
    rows = [at(0), at(1), at(30).replace("03/01", "03/02"), at(31).replace("03/01", "03/02")]
    found, recordings = sessions(query(rows))
    assert [[s.t_s for s in samples] for samples, _ in recordings] == [[0, 1], [0, 1]]
    rows = [at(5), at(6), at(3), at(7)]
    found, [(samples, _)] = sessions(query(rows))
    assert [s.t_s for s in samples] == [0, 1, 2]
    assert found.skipped == {"rows whose time goes back": 1}


@pytest.mark.parametrize(
    ("name", "reading"),
    [
        ("power.draw", "power_w"),  # before driver 535
        ("power.draw.average", "power_w"),  # from 535 on
        ("power.draw.instant", "power_instant_w"),
        ("power.limit", "power_limit_w"),
        ("enforced.power.limit", "power_limit_w"),
    ],
)
def test_a8_power_by_its_old_and_new_names(sessions, name, reading):
    rows = [f"2025/03/01 10:00:0{n}.000, 250.10" for n in range(2)]
    _, [(samples, _)] = sessions(query(rows, f"timestamp, {name} [W]"))
    assert [getattr(s, reading) for s in samples] == [250.1, 250.1]


@pytest.mark.parametrize("word", ["throttle", "event"])
def test_a9_throttle_and_event_reasons_are_one(sessions, word):
    header = f"timestamp, clocks_{word}_reasons.sw_power_cap, clocks_{word}_reasons.hw_slowdown"
    rows = ["2025/03/01 10:00:00.000, Active, Not Active",
            "2025/03/01 10:00:01.000, Not Active, Not Active",
            "2025/03/01 10:00:02.000, [N/A], [N/A]"]  # fmt: skip
    _, [(samples, _)] = sessions(query(rows, header))
    assert [s.throttle_reasons for s in samples] == [("sw_power_cap",), (), None]
    header = f"timestamp, clocks_{word}_reasons.active"
    rows = ["2025/03/01 10:00:00.000, 0x0000000000000041",
            "2025/03/01 10:00:01.000, [N/A]"]  # fmt: skip
    _, [(samples, _)] = sessions(query(rows, header))
    assert [s.throttle_reasons for s in samples] == [("hw_thermal_slowdown",), None]


@pytest.mark.parametrize(
    "word",
    [
        "N/A", "[N/A]", "[Not Supported]", "[Not Suppor", "[Unknown Error]", "-", "ERR!", "??", "",
        "[Insufficient Permissions]", "[GPU is lost]", "[GPU requires reset]", "nan", "inf",
        "[Requested functionality has been deprecated]", "Requested", "Unknown Error", "W",
    ],
)  # fmt: skip
def test_a10_words_for_no_reading_are_none_and_never_0(sessions, word):
    rows = [at(0, power=word), at(1, power=word), at(2)]
    _, [(samples, _)] = sessions(query(rows))
    assert [s.power_w for s in samples] == [None, None, 250.1]
    assert [s.temperature_c for s in samples] == [61, 61, 61]


def test_a10_cells_that_cannot_be_theirs_are_left_out_and_said(sessions):
    rows = [at(0, power="1800 MHz"), at(1, power="0.25 kW", rest="127, 1.8 GHz, 1 GiB")]
    found, [(samples, _)] = sessions(query(rows))
    assert [s.power_w for s in samples] == [None, 250]
    assert [s.temperature_c for s in samples] == [61, None]
    assert [s.sm_clock_mhz for s in samples] == [1800, 1800]
    assert found.odd == {"power_w": 1, "temperature_c": 1}
    rows = [at(0, power='"1,350"'), at(1, power='"250,1 W"')]
    found, [(samples, _)] = sessions(query(rows))
    assert [s.power_w for s in samples] == [None, 250.1]


def test_gpu_burn_as_it_prints_and_as_a_table(sessions):
    line = "{}%  proc'd: 4 (90.5 Gflop/s) - 8 (80 Gflop/s)   errors: 0 - 0   temps: 71 C - -- \r"
    found, [(samples, infos)] = sessions("".join(line.format(n) for n in range(4)), period_s=2.0)
    assert found.format == "gpu-burn-progress"
    assert [i.device_id for i in infos] == ["0", "1"]
    assert [(s.t_s, s.temperature_c) for s in samples if s.device_id == "0"][-1] == (6.0, 71)
    assert {s.temperature_c for s in samples if s.device_id == "1"} == {None}
    text = "ClientCalcs,Gflops,Temperature,Errors\n" + "4,88.9,71,0\n" * 3
    found, [(samples, _)] = sessions(text, period_s=1.0)
    assert found.format == "gpu-burn-csv"
    assert [s.temperature_c for s in samples] == [71, 71, 71]


def test_four_kinds_of_field_log_are_judged_from_the_log_itself(tmp_path):
    noise = random.Random(4)

    def judged(text, **options):
        (tmp_path / "log").write_bytes(text.encode("latin-1"))
        (line,) = judge_file(tmp_path / "log", options=Options(**options))
        assert line["provenance"] == "imported"
        return line

    two_stage = GPU_Z + "".join(
        f"2025-03-01 14:{t // 60:02d}:{t % 60:02d} , {1500 if t < 40 else 1290} , "
        f"{40 + min(t, 40) * 0.6:.1f} , {(48 if t < 40 else 38) + noise.gauss(0, 0.3):.1f} ,\n"
        for t in range(300)
    )
    assert judged(two_stage)["frozen_at_s"] is None
    stuck = "timestamp, power.draw [W], temperature.gpu, clocks.sm [MHz]\n" + "".join(
        f"2025/03/01 14:{t // 60:02d}:{t % 60:02d}.000, 46.19 W, {32 + t // 20}, [Unknown Error]\n"
        for t in range(700)
    )
    line = judged(stuck)
    assert line["state"] != "steady"
    assert "power is stuck" in line["reason"]
    falling = "ClientCalcs,Gflops,Temperature,Errors\n" + "".join(
        f"4,{91 - 12 * t / 5400:.4f},{70 + round(13 * t / 5400)},0\n" for t in range(5401)
    )
    line = judged(falling, period_s=1.0)
    assert line["state"] == "not-steady"
    assert line["unit"] == "GFLOP"
    constant = "Gflops,Temperature\n" + f"{88.9},71\n" * 600
    assert judged(constant, period_s=2.0)["throughput"]["mean"] == pytest.approx(88.9, rel=1e-3)
    idle = "".join(
        f"2025/03/01 14:{t // 60:02d}:{t % 60:02d}.000, 0 %, 27, {noise.gauss(11.5, 0.1):.2f} W\n"
        for t in range(0, 3000, 5)
    )
    columns = ("timestamp", "utilization.gpu", "temperature.gpu", "power.draw")
    assert judged(idle, columns=columns)["state"] == "idle"


def test_fuzzed_logs_are_a_sentence_and_never_a_traceback(tmp_path, sessions):
    chance = random.Random(11)
    texts = [
        query([at(n) for n in range(6)]), DMON + "  0  203  61  -  98  40\n" * 4,
        GPU_Z + "2025-03-01 14:00:00 , 1 , 2 , 3 ,\n", "ClientCalcs,Gflops,Temperature\n1,2,3\n",
    ]  # fmt: skip
    log = tmp_path / "fuzz"
    for n in range(400):
        data = bytearray(chance.choice(texts).encode("latin-1"))
        for _ in range(chance.randrange(1, 12)):
            where = chance.randrange(len(data))
            if chance.random() < 0.3:
                del data[where : where + chance.randrange(1, 9)]
            else:
                data[where : where + 1] = bytes(chance.choices(range(256), k=2))
        log.write_bytes(data)
        said = ""
        try:
            assert understand(log, Options(period_s=1.0)).recordings, n
        except UsageError as error:
            said = str(error)
        assert "\n" not in said, n


def test_an_importer_is_one_file():
    assert set(importing.importer_modules()) == {
        "gpu-burn-csv", "gpu-burn-progress", "gpu-z", "hwinfo", "nvidia-smi-csv", "nvidia-smi-dmon",
    }  # fmt: skip


@pytest.mark.parametrize(
    "content", [b"", b"\0\1\2" * 99, b"hello\n", b"a,b\n1,2\n", b"\xff\xfe", b"timestamp\n"]
)
def test_what_is_no_log_is_refused_in_one_line(sessions, content):
    with pytest.raises(UsageError) as refused:
        sessions(content)
    assert "\n" not in str(refused.value)
