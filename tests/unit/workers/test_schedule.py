from types import SimpleNamespace

from workers.schedule import build_clock


def test_each_tick_only_sends_messages_for_every_workspace(home):
    sent = []
    queue = SimpleNamespace(
        sweep=lambda workspace: sent.append(("sweep", workspace)),
        run_job=lambda name, workspace, **_options: sent.append((name, workspace)),
    )
    for name in ("alpha", "beta"):
        file = home.paths.workspace(name).events
        file.parent.mkdir(parents=True)
        file.touch()
    for job in build_clock(home, queue).get_jobs():
        job.func()
    expected = {(name, workspace) for name in ("sweep", "segment", "vectors") for workspace in ("alpha", "beta")}
    assert set(sent) == expected
    assert len(sent) == len(expected)


def test_the_clock_keeps_the_intervals_of_the_settings(home):
    clock = build_clock(home, SimpleNamespace(sweep=None, run_job=None))
    seconds = {job.id: job.trigger.interval.total_seconds() for job in clock.get_jobs()}
    assert seconds == {
        "sweep": home.sweep_interval_s,
        "segment": home.segment_interval_s,
        "vectors": home.vectors_interval_s,
    }
    # Defaults reach a job when the clock starts; until then they stand on the clock.
    assert clock._job_defaults == {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}
