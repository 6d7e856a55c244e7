import os
import signal
import sys
import threading
import time
from functools import partial
from io import StringIO
from pathlib import Path

import psutil
import pytest

from config.process import EXIT_IN_USE, Role, RoleInUse
from tests.fakes.command_line import run
from tests.support.stack import free_port
from web.features.lifecycle.commands import speaker
from web.stack.procfile import PROCFILE, ProcessCommand, read_procfile
from web.stack.supervisor import Backoff, Supervisor

ROOT = Path(__file__).parents[3]
QUICK = Backoff(first_s=0.01, longest_s=0.02)


class Said:
    """Notes what is said, and acts on a line that contains a text."""

    def __init__(self):
        self.lines = []
        self.reactions = {}

    def __call__(self, name, line):
        self.lines.append((name, line))
        for text, react in list(self.reactions.items()):
            if text in line:
                react()

    def of(self, name):
        return [line for who, line in self.lines if who == name]


def is_running(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def python(name, program):
    return ProcessCommand(name, (sys.executable, "-c", program))


@pytest.fixture
def output():
    return Said()


def test_the_stack_is_that_of_the_procfile():
    web, worker, scheduler = read_procfile(3)
    assert web.below(7) == [sys.executable, "-u", "-I", "-m", "reverie.run", "web", "--stop-with-parent", "7"]
    assert worker.words[worker.words.index("-w") + 1] == "3"
    assert scheduler.alone() == [sys.executable, "-u", "-I", "-m", "reverie.run", "workers.schedule"]
    # honcho and other programs find the same file in the usual place.
    assert (ROOT / "Procfile").samefile(PROCFILE)


def test_procfile_lines_define_the_started_commands(home, monkeypatch, tmp_path):
    file = tmp_path / "Procfile"
    file.write_text(
        "# A comment.\n\nweb: exec python -c 'import sys; print(sys.argv[1:]); sys.exit(69)' "
        "${REVERIE_WORKER_PROCESSES:-1} ${NAME:-a b} --stop-with-parent\n"
    )
    monkeypatch.setattr("web.features.lifecycle.commands.read_procfile", partial(read_procfile, file=file))
    monkeypatch.setenv("REVERIE_WORKER_PROCESSES", "2")
    monkeypatch.setenv("REVERIE_PORT", str(free_port()))
    assert f"['2', 'a', 'b', '--stop-with-parent', '{os.getpid()}']" in run("up", code=1).stdout


def test_restart_delay_doubles_to_its_limit_and_resets_after_stability():
    backoff = Backoff(first_s=0.5, longest_s=30, steady_s=30)
    assert [backoff.delay_s(n) for n in range(1, 9)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert backoff.failures(7, lived_s=29) == 8
    assert backoff.failures(7, lived_s=30) == 1
    assert backoff.delay_s(10_000) == 30


def test_crashed_process_is_restarted_while_others_continue(output):
    commands = [
        python("steady", "import signal; print('here', flush=True); signal.pause()"),
        python("weak", "import sys; print('born'); sys.exit(3)"),
    ]
    supervisor = Supervisor(commands, output, backoff=QUICK)
    third = threading.Event()

    def count():
        if len(output.of("weak")) >= 3 and output.of("steady"):
            third.set()
            supervisor.stop()

    output.reactions = {"born": count, "here": count}
    assert supervisor.run() == 0
    assert third.is_set()
    assert output.of("steady") == ["here"]
    assert any("weak ended (exit code 3); starting it again" in line for line in output.of("reverie"))


def test_the_others_start_once_the_first_is_ready(output):
    commands = [
        python("first", "import signal; print('here', flush=True); signal.pause()"),
        python("second", "import signal; print('there', flush=True); signal.pause()"),
    ]
    looked = []

    def is_ready():
        looked.append([name for name, _ in output.lines])
        return len(looked) > 3 and "first" in looked[-1]

    supervisor = Supervisor(commands, output, is_first_ready=is_ready)
    output.reactions = {"there": supervisor.stop}
    assert supervisor.run() == 0
    assert all("second" not in names for names in looked)
    assert output.of("second") == ["there"]


def test_other_processes_start_although_the_first_is_never_ready(output, monkeypatch):
    monkeypatch.setattr("web.stack.supervisor.HOLD_S", 0.1)
    pause = "import signal; print('here', flush=True); signal.pause()"
    supervisor = Supervisor([python("first", pause), python("second", pause)], output, is_first_ready=lambda: False)

    def stop_with_both():
        if output.of("first") and output.of("second"):
            supervisor.stop()

    output.reactions = {"here": stop_with_both}
    assert supervisor.run() == 0
    assert output.of("second") == ["here"]


def test_a_taken_place_ends_everything(output):
    commands = [
        python("steady", "import signal; signal.pause()"),
        python("web", f"import sys; print('port is taken'); sys.exit({EXIT_IN_USE})"),
    ]
    assert Supervisor(commands, output, backoff=QUICK).run() == 1
    assert "web cannot run; stopping" in output.of("reverie")


def test_last_output_of_a_process_is_shown_before_the_stop(output):
    stopping = threading.Event()
    output.reactions = {"port is": lambda: stopping.wait(0.3), "cannot run": stopping.set}
    program = f"import sys; print('port is'); print('taken'); sys.exit({EXIT_IN_USE})"
    assert Supervisor([python("web", program)], output, backoff=QUICK).run() == 1
    assert [line for _, line in output.lines][:3] == ["port is", "taken", "web cannot run; stopping"]


def test_process_ignoring_sigterm_is_killed_with_its_children_after_grace(output):
    program = (
        "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); child = os.fork()\n"
        "if child: print('child', child, flush=True)\n"
        "signal.pause()"
    )
    supervisor = Supervisor([python("deaf", program)], output, grace_s=0.05)
    output.reactions = {"child": supervisor.stop}
    assert supervisor.run() == 0
    assert "deaf does not stop; killing it" in output.of("reverie")
    child = int(output.of("deaf")[0].split()[1])
    end = time.monotonic() + 10
    while is_running(child):
        assert time.monotonic() < end, "the child lives on"
        threading.Event().wait(0.01)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_stop_it_and_are_given_back(output, number):
    output.reactions = {"here": lambda: os.kill(os.getpid(), number)}
    command = python("steady", "import signal; print('here', flush=True); signal.pause()")
    # Whoever runs the tests may ignore one, as nohup does.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        assert Supervisor([command], output).run() == 0
        assert f"{number.name}: stopping" in output.of("reverie")
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_a_hangup_that_nohup_ignores_stays_ignored(output):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        supervisor = Supervisor([python("steady", "import signal; print('here', flush=True); signal.pause()")], output)

        def hang_up_then_stop():
            os.kill(os.getpid(), signal.SIGHUP)
            supervisor.stop()

        output.reactions = {"here": hang_up_then_stop}
        assert supervisor.run() == 0
        assert output.of("reverie") == ["SIGTERM: stopping"]
    finally:
        signal.signal(signal.SIGHUP, before)


def test_lines_carry_their_names_and_a_reader_that_left_is_no_error():
    class Gone(StringIO):
        def flush(self):
            raise BrokenPipeError

    stream = StringIO()
    speaker(stream, ["web", "scheduler"])("web", "ready")
    assert stream.getvalue() == "web       | ready\n"
    gone = Gone()
    say = speaker(gone, ["web"])
    say("web", "one")
    say("web", "two")
    assert gone.getvalue() == "web     | one\n"


def test_a_role_has_one_holder_and_survives_looks_at_it(tmp_path):
    role, other = Role(tmp_path, "up"), Role(tmp_path, "up")
    assert other.holder() is None
    role.take()
    with pytest.raises(RoleInUse) as caught:
        other.take()
    assert caught.value.pid == other.holder() == os.getpid()
    role.release()
    # Somebody else's look at the lock must not make taking it fail.
    looking, stop = threading.Event(), threading.Event()

    def look():
        watcher = Role(tmp_path, "up")
        while not stop.is_set():
            watcher.is_held()
            looking.set()

    thread = threading.Thread(target=look)
    thread.start()
    looking.wait()
    try:
        for _ in range(50):
            role.take()
            role.release()
    finally:
        stop.set()
        thread.join()


def test_a_role_that_was_given_back_is_not_taken_from_the_next(tmp_path):
    role, other = Role(tmp_path, "up"), Role(tmp_path, "up")
    role.take()
    role.release()
    other.take()
    role.release()
    assert other.holder() == os.getpid()
    other.release()


def test_its_place_is_free_before_its_processes_are_stopped(output):
    order = []
    supervisor = Supervisor(
        [python("steady", "import signal; print('here', flush=True); signal.pause()")],
        output,
        on_stop=lambda: order.append(list(output.of("reverie"))),
    )
    output.reactions = {"here": lambda: supervisor.stop("5 min without a request")}
    assert supervisor.run() == 0
    assert order == [["5 min without a request: stopping"]]


def test_pid_file_of_a_killed_process_has_no_holder(tmp_path):
    (tmp_path / "up.pid").write_text('{"pid": 1, "owner": "somewhere-else:1:0.00"}')
    role = Role(tmp_path, "up")
    assert role.holder() is None
    program = (
        "import os, signal, sys; from pathlib import Path; from config.process import Role\n"
        f"Role(Path({str(tmp_path)!r}), 'up').take(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-P", "-c", program]) == -signal.SIGKILL
    assert Role(tmp_path, "up").holder() is None
    # The next holder has the lock and has not yet written its own note.
    role._lock.acquire()
    assert Role(tmp_path, "up").holder() is None
