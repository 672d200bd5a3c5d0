"""Files of records: what stands in them, that it reads back, and what is refused."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from gptnt.players.workbench import Puppet
from gptnt.recordings.workbench import crash, played, refooter, rewrite, without_expert_steps
from rowproof.errors import ConfigError, RecordError
from rowproof.gptnt.bomb.mission import Mission
from rowproof.gptnt.players.turns import Answer, AnswerError, Usage, do_nothing, send_message
from rowproof.gptnt.recordings import (
    SCHEMA,
    decode_recording,
    encode_recording,
    file_name,
    join,
    pack,
    read_folder,
    read_recording,
    read_result,
    unpack,
    write_game,
)
from rowproof.gptnt.room import Provenance
from rowproof.records import encode_line

GAME = played()


@pytest.fixture
def path(tmp_path):
    """The file of a defuser."""
    return write_game(GAME, tmp_path)[0]


# ---- what is written -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "game",
    [
        GAME,
        played(alone=True),
        played(style="async"),
        played(defuser=Puppet(crash)),
        played(defuser=Puppet(lambda turn: Answer(do_nothing(), thoughts="Hm.", raw_output="{}", errors=("unknown",)))),
        played(defuser=Puppet(lambda turn: send_message("naïve ✂ \x00 'quoted'"))),
        played(Mission(851, 60, ("Wires", "NeedyKnob"), 5)),
    ],
    ids=["two", "solo", "async", "crashed", "errors", "text", "needy"],
)
def test_a_game_reads_back_as_it_was(tmp_path, game):
    paths = write_game(game, tmp_path)
    records = [read_recording(path).record for path in paths]
    assert list(map(encode_line, records)) == list(map(encode_line, game.records.values()))
    assert [record["footer"]["role"] for record in records] == list(game.records)


def test_the_same_game_gives_the_same_bytes(tmp_path):
    first, second = write_game(GAME, tmp_path / "a"), write_game(played(), tmp_path / "b")
    assert [p.name for p in first] == [p.name for p in second]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in second]


def test_columns_and_their_types(path):
    schema = pq.read_schema(path)
    text, blob = pa.large_string(), pa.large_binary()
    assert {field.name: field.type for field in schema} == {
        "step": pa.int32(),
        "timestamp": pa.float64(),
        **dict.fromkeys(("role", "session_id", "player_uuid", "player_name", "output", "raw_output", "thoughts"), text),
        **dict.fromkeys(("input_messages", "new_messages"), blob),
        "bomb_state": text,
        **dict.fromkeys(("observation", "usage"), blob),
        "num_prompt_truncations": pa.int32(),
        "error_type": pa.list_(pa.field("element", text)),
        "is_reflection": pa.bool_(),
        "output_kind": text,
        **dict.fromkeys(("requested_at", "responded_at", "observation_at"), pa.float64()),
    }
    required = {field.name for field in schema if not field.nullable}
    assert required == {
        *("step", "timestamp", "role", "session_id", "player_uuid", "player_name", "output", "usage"),
        *("num_prompt_truncations", "output_kind"),
    }


def test_the_footer_of_a_file(path):
    metadata = pq.read_metadata(path).metadata
    record = GAME.records["defuser"]
    assert metadata[b"footer"].decode() == encode_line(record["footer"])
    assert metadata[b"format_version"] == b"2"
    assert metadata[b"session_id"].decode() == record["session_id"]
    assert metadata[b"player_uuid"].decode() == record["player_uuid"]


def test_blobs_hold_the_messages(path):
    table = pq.read_table(path)
    assert table["input_messages"].null_count == len(table)
    assert unpack(table["new_messages"][0].as_py(), "blob") == ["<no_new_messages>"]
    assert pack({"a": [1, 2.0, None, True, "ä"]}) == pack({"a": [1, 2.0, None, True, "ä"]})


def test_rows_come_in_groups():
    waits = played(Mission(234, 300, ("Wires",), 2), defuser=Puppet())
    file = pq.ParquetFile(pa.BufferReader(encode_recording(waits.records["defuser"])))
    sizes = [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]
    assert sizes == [64, 101 - 64]


def test_names_append_the_extension(path):
    name = "workbench[rev1]_workbench_sync_Wires_234_(defuser=scripted--expert=scripted)_attempt1"
    assert path.name == f"experiment-{name}-{GAME.records['defuser']['player_uuid']}.parquet"
    assert file_name("gpt-5.2_attempt1", "u") == "experiment-gpt-5.2_attempt1-u.parquet"


def test_long_names_fit_and_stay_apart():
    names = {file_name("x" * 300 + end, "u" * 36) for end in ("1", "2")}
    assert len(names) == 2 and {len(name.encode()) for name in names} == {240}


def test_a_player_without_steps_leaves_no_file(tmp_path):
    def refuse(turn):
        raise RuntimeError("gone")

    game = played(expert=Puppet(refuse))
    assert [read_recording(path).footer.role for path in write_game(game, tmp_path)] == ["defuser"]


def test_nothing_else_is_left_in_the_folder(tmp_path):
    paths = write_game(GAME, tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(paths)


def test_usage_is_stored_per_step(tmp_path):
    counts = iter(range(1, 100))
    spends = Puppet(lambda turn: Answer(do_nothing(), usage=Usage(next(counts), details=(("reasoning_tokens", 7),))))
    path = write_game(played(defuser=spends), tmp_path)[0]
    steps = read_recording(path).steps[:-1]
    assert [step["usage"]["input_tokens"] for step in steps] == list(range(1, len(steps) + 1))
    assert steps[0]["usage"]["details"] == {"reasoning_tokens": 7}


# ---- what is refused -------------------------------------------------------------------------------------------


def column(name, values):
    """A change of a table: other values in one column."""

    def change(table):
        index = table.schema.get_field_index(name)
        return table.set_column(index, table.schema.field(name), pa.chunked_array([pa.array(values(table))]))

    return change


def cells(name, make):
    return column(
        name, lambda table: pa.array([make(v) for v in table[name].to_pylist()], table.schema.field(name).type)
    )


def first(name, value):
    """Another value in the first row of a column."""
    return column(name, lambda table: pa.array([value, *table[name].to_pylist()[1:]], table.schema.field(name).type))


USAGE = Usage()._asdict() | {"details": {}}
ROWS = {
    "unordered steps": (first("step", 2), "step 1: step must be 1, found 2"),
    "another role": (first("role", "expert"), "step 1: role must be 'defuser', found 'expert'"),
    "another session": (first("session_id", "0"), "step 1: session_id must be"),
    "another player": (first("player_name", "x"), "step 1: player_name must be 'scripted', found 'x'"),
    "no number": (first("timestamp", float("nan")), "step 1: timestamp must be a finite number of seconds, found nan"),
    "output is no JSON": (first("output", "{"), "step 1: output: must be valid JSON"),
    "output is no text": (
        first("output", r'{"message":"\ud83d"}'),
        "step 1: output: a record may hold Unicode text only, found the lone surrogate",
    ),
    "damaged blob": (first("new_messages", b"x"), "step 1: new_messages: must be MessagePack compressed with zstd"),
    "blob of something else": (first("usage", pack([1])), "step 1: usage must have the counts"),
    "negative count": (first("usage", pack(USAGE | {"requests": -1})), "usage: requests must be a count, found -1"),
    "odd details": (first("usage", pack(USAGE | {"details": []})), r"usage: details must be an object, found \[\]"),
    "unknown error": (first("error_type", ["typo"]), r"error_type must hold kinds out of .*found \['typo'\]"),
    "unknown kind": (first("output_kind", "jump"), "output_kind must be one of .*found 'jump'"),
    "turn as look back": (first("is_reflection", True), "is_reflection must be true for output_kind reflection"),
    "another final state": (cells("bomb_state", lambda s: None), "the last turn of the defuser must show final_bomb"),
    "no rows": (lambda table: table.slice(0, 0), "must hold at least one step, found none"),
    "a column less": (lambda table: table.drop_columns(["thoughts"]), "must have the columns of a record, .*thoughts"),
    "a column more": (lambda table: table.append_column("x", table["step"]), "must have the columns .*'x int32"),
    "other order": (lambda table: table.select(SCHEMA.names[::-1]), "must have the columns .*found the order"),
}


@pytest.mark.parametrize(("change", "message"), ROWS.values(), ids=ROWS)
def test_rows_that_do_not_fit_are_refused(path, change, message):
    rewrite(path, change)
    with pytest.raises(RecordError, match=message) as caught:
        read_recording(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"format_version": "1"}, "format_version must be 2, found '1'"),
        ({"format_version": "3"}, "format_version must be 2, found '3'"),
        ({"format_version": None}, "format_version must be 2, found ''"),
        ({"footer": None}, "the footer must hold footer"),
        ({"session_id": None}, "the footer must hold session_id"),
        ({"footer": "{"}, "footer: must be valid JSON"),
        ({"footer": "[]"}, "footer: "),
        ({"session_id": "0"}, "session_id must be .* as the descriptor has it, found '0'"),
        ({"player_uuid": "0"}, "player_uuid must be .* as the descriptor has it, found '0'"),
    ],
)
def test_texts_beside_the_rows_that_do_not_fit_are_refused(path, texts, message):
    rewrite(path, **texts)
    with pytest.raises(RecordError, match=message):
        read_recording(path)


def put(*keys, value):
    def change(footer):
        *way, last = keys
        for key in way:
            footer = footer[key]
        footer[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("gptnt_version", value="0.0.0"), "gptnt_version: .*neither blank nor 0.0.0"),
        (put("gptnt_version", value=" "), "gptnt_version: .*neither blank nor 0.0.0"),
        (put("role", value="judge"), "role must be defuser or expert, found 'judge'"),
        (put("extra", value=1), "footer: extra: unknown key"),
        (put("assets_digest", value="none"), "footer: assets_digest"),
        (put("duration_s", value=-1.0), "footer: duration_s"),
        (put("step_counts", value={}), "step_counts must be of"),
        (put("step_counts", "defuser", value=1), r"step_counts must be of \['defuser', 'expert'\], 4 for the defuser"),
        (put("step_counts", "expert", value=-1), "footer: step_counts.expert"),
        (put("step_counts", "judge", value=1), "step_counts must be of"),
        (put("is_hard_crash", value=None), "footer: is_hard_crash"),
        (put("final_bomb_state", value=None), "final_bomb_state must be there for the defuser"),
        (put("final_bomb_state", "modules", value=None), "final_bomb_state: modules"),
        (put("descriptor", "start_time", value=-1.0), "footer: descriptor.start_time"),
        (put("descriptor", "expert_uuid", value=None), "must be there together or not at all"),
        (put("descriptor", "expert_capabilities", value=None), "must be there together or not at all"),
        (put("descriptor", "defuser_capabilities", "player_type", value="bot"), "defuser_capabilities: player_type"),
        (put("descriptor", "defuser_capabilities", "player_name", value="x"), "defuser_capabilities must be of 'scr"),
        (put("descriptor", "experiment_spec", "fingerprint", value="0"), "experiment_spec: fingerprint must be"),
        (put("descriptor", "experiment_spec", "suite_revision", value=0), "experiment_spec: suite_revision"),
    ],
)
def test_footers_that_do_not_fit_are_refused(path, change, message):
    refooter(path, change)
    with pytest.raises(RecordError, match=message):
        read_recording(path)


def test_damaged_files_are_refused(path):
    data = path.read_bytes()
    for damaged in (b"", b"PAR1", data[: len(data) // 2], data[:-1], data[4:], b"x" * 100):
        path.write_bytes(damaged)
        with pytest.raises(RecordError, match="must be a whole Parquet file"):
            read_recording(path)


def test_a_flipped_byte_in_a_page_is_noticed(path):
    data = bytearray(path.read_bytes())
    group = pq.read_metadata(path).row_group(0)
    for index in range(group.num_columns):
        column = group.column(index)
        # The last byte of a column is one of its data.
        start = column.data_page_offset if column.dictionary_page_offset is None else column.dictionary_page_offset
        place = start + column.total_compressed_size - 1
        data[place] ^= 0xFF
        with pytest.raises(RecordError):
            decode_recording(bytes(data), "file")
        data[place] ^= 0xFF
    decode_recording(bytes(data), "file")


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(RecordError, match="must be a readable file: No such file"):
        read_recording(tmp_path / "experiment-x.parquet")
    with pytest.raises(ConfigError, match="must be a folder with records"):
        read_folder(tmp_path / "none")
    with pytest.raises(ConfigError, match="workers must be 1 or more, found 0"):
        read_folder(tmp_path, workers=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record["footer"].update(gptnt_version="0.0.0"), "gptnt_version"),
        (lambda record: record["footer"]["descriptor"]["defuser_capabilities"].pop("player_type"), "player_type"),
        (lambda record: record["steps"].clear(), "at least one step"),
        (lambda record: record["steps"][0].update(extra=1), "must have the columns"),
        (lambda record: record["steps"][0].update(usage={"input_tokens": 1}), "usage must have the counts"),
        (lambda record: record["steps"][0].update(new_messages=[object()]), "a blob must hold plain data"),
        (lambda record: record["steps"][0].update(num_prompt_truncations="x"), "must fit the columns of a record"),
        (lambda record: record["steps"][0].update(num_prompt_truncations=2**40), "must fit the columns of a record"),
    ],
)
def test_what_would_not_be_read_is_not_written(tmp_path, change, message):
    game = played()
    change(game.records["defuser"])
    with pytest.raises(RecordError, match=message):
        write_game(game, tmp_path)
    assert list(tmp_path.iterdir()) == []


# ---- how a game ended ------------------------------------------------------------------------------------------


def state(**changes):
    timer = {"secondsRemaining": changes.pop("seconds", 10.0)}
    modules = [{"name": name, "isSolved": solved} for name, solved in changes.pop("modules", [("Wires", False)])]
    base = {"isSolved": False, "isDetonated": True, "strikes": [], "maxStrikes": 3}
    return base | {"timerModule": timer, "modules": modules} | changes


THREE = ["Wires"] * 3
SOLVED, UNSOLVED, NEEDY = ("Wires", True), ("Maze", False), ("NeedyKnob", False)


@pytest.mark.parametrize(
    ("final", "result"),
    [
        (state(isSolved=True, isDetonated=False), ("solved", 10.0, 0, 0, 1)),
        (state(modules=[SOLVED], isDetonated=False), ("solved", 10.0, 0, 1, 1)),
        (state(modules=[SOLVED, NEEDY], isDetonated=False), ("solved", 10.0, 0, 1, 2)),
        (state(isDetonated=False), ("incomplete", 10.0, 0, 0, 1)),
        (state(seconds=-0.5), ("timeout", 0.0, 0, 0, 1)),
        (state(strikes=THREE), ("strikeout", 10.0, 3, 0, 1)),
        (state(strikes=THREE, seconds=0.0), ("timeout", 0.0, 3, 0, 1)),
        (state(strikes=THREE[:2], modules=[SOLVED, UNSOLVED]), ("detonated", 10.0, 2, 1, 2)),
    ],
)
def test_outcomes(final, result):
    assert read_result(final, "state") == result


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("style", ["sync", "async"])
def test_the_result_of_a_record_is_that_of_the_room(tmp_path, alone, style):
    for number, game in enumerate(
        (played(alone=alone, style=style), played(alone=alone, style=style, defuser=Puppet()))
    ):
        (session,), _ = join(read_folder_of(game, tmp_path / str(number)))
        assert game.summary.items() >= session.result._asdict().items()
        assert (session.is_valid, session.is_hard_crash) == (game.valid, bool(game.failure))
        assert session.defuser.n_turns == game.summary["n_rounds"]
        assert session.defuser.footer.duration_s == game.summary["duration_s"]


def read_folder_of(game, folder):
    write_game(game, folder)
    return read_folder(folder).recordings


# ---- sessions out of records -----------------------------------------------------------------------------------


def test_records_of_a_session_may_lie_apart(tmp_path):
    _, expert = write_game(GAME, tmp_path)
    (tmp_path / "sub").mkdir()
    expert.rename(tmp_path / "sub" / expert.name)
    (session,), left = join(read_folder(tmp_path).recordings)
    assert session.is_whole and session.is_valid and left == []
    assert [one.footer.role for one in session.recordings] == ["defuser", "expert"]


def test_two_goes_of_one_session_are_two(tmp_path):
    good, crashed = played(), played(expert=Puppet(crash))
    assert good.records["defuser"]["session_id"] == crashed.records["defuser"]["session_id"]
    write_game(crashed, tmp_path / "a")
    write_game(good, tmp_path / "b")
    sessions, left = join(read_folder(tmp_path).recordings)
    assert [session.is_valid for session in sessions] == [False, True] and left == []
    assert all(len({one.folder for one in session.recordings}) == 1 for session in sessions)


def test_a_session_is_whole_if_every_player_that_took_steps_has_a_record(tmp_path):
    (session,), _ = join(read_folder_of(without_expert_steps(), tmp_path / "a"))
    assert session.is_whole and session.expert is None
    write_game(GAME, tmp_path / "b")[1].unlink()
    (session,), _ = join(read_folder(tmp_path / "b").recordings)
    assert not session.is_whole and session.is_valid


def test_a_copy_is_no_second_session(tmp_path):
    write_game(GAME, tmp_path / "a")
    write_game(GAME, tmp_path / "b")
    assert len(join(read_folder(tmp_path).recordings)[0]) == 1


def test_an_expert_alone_is_left(tmp_path):
    defuser, expert = write_game(GAME, tmp_path)
    defuser.unlink()
    sessions, left = join(read_folder(tmp_path).recordings)
    assert sessions == [] and [one.path for one in left] == [expert]


def test_a_folder_is_read_alike_with_any_number_of_workers(tmp_path):
    for number in range(3):
        write_game(played(attempt=number + 1), tmp_path / str(number))
    assert read_folder(tmp_path, 1) == read_folder(tmp_path, 4)
    assert len(read_folder(tmp_path).recordings) == 6


def test_answers_that_fail_are_recorded(tmp_path):
    def fail(turn):
        raise AnswerError("server_error", raw_output="503", usage=Usage(5))

    path = write_game(played(defuser=Puppet(fail)), tmp_path)[0]
    step = read_recording(path).steps[0]
    assert (step["error_type"], step["raw_output"], step["usage"]["input_tokens"]) == (["server_error"], "503", 5)


def test_what_names_no_version_is_refused_before_the_game():
    with pytest.raises(ConfigError, match="the version of the package must be known"):
        played(provenance=Provenance("0.0.0"))
