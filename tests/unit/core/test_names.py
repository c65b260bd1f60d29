"""Names survive a round trip through text: a backend finds its runs again by them."""

from trainshed.core.logs import Line, OutputStream, place_of
from trainshed.core.names import ReplicaName, RunKey


def test_a_replicas_name_is_read_back_from_its_text():
    name = ReplicaName("1.2.odd", 3, 0, 17)
    assert ReplicaName.parse(str(name)) == name


def test_a_run_is_named_by_its_replica_and_its_number():
    assert str(RunKey(ReplicaName("77", 1, 2, 3), 4)) == "77.1.2.3.4"


def test_the_name_on_a_log_line_is_vertex_ais():
    assert ReplicaName("77", 1, 2, 3).task == "workerpool2-3"


def test_insert_ids_are_of_one_width_and_sort_as_their_lines_do():
    def line(at_ns: int, sequence: int, stream: OutputStream = OutputStream.STDOUT) -> Line:
        return Line("1", 0, 0, 0, stream, at_ns, sequence, "")

    lines = [
        line(9, 0),
        line(9, 5),
        line(9, 50),
        line(9, 1, OutputStream.STDERR),
        line(10, 0),
        line(10**18, 0),
    ]
    ids = [each.insert_id for each in lines]
    assert ids == sorted(ids)
    assert len({len(i) for i in ids}) == 1


def test_lines_of_two_jobs_in_one_moment_have_ids_of_their_own_that_name_their_place():
    lines = [Line(job, 0, 0, 0, OutputStream.STDOUT, 9, 5, "") for job in ("1", "2")]
    first, second = (line.insert_id for line in lines)
    assert first != second
    assert [place_of(first), place_of(second)] == [(9, first), (9, second)]


def test_an_id_of_an_older_release_names_the_place_before_its_line():
    line = Line("1", 0, 0, 0, OutputStream.STDOUT, 9, 5, "")
    older = line.insert_id.removesuffix("-1")
    assert place_of(older) == (9, older)
    assert older < line.insert_id
