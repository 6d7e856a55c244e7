from web.hosts.files import TokenFile, find_token_files


def test_nobody_holds_a_token_before_a_setup(sandbox):
    assert find_token_files(sandbox.state, sandbox.reverie.token) == []


def test_a_file_holds_the_token_until_it_is_renewed_and_again_after_the_next_setup(sandbox):
    sandbox.setup("claude-code", "codex", "cursor")
    file = sandbox.home / ".claude" / "settings.json"
    assert find_token_files(sandbox.state, sandbox.reverie.token) == [TokenFile(file, ("claude-code",), current=True)]
    assert find_token_files(sandbox.state, "another") == [TokenFile(file, ("claude-code",), current=False)]
    file.unlink()
    assert find_token_files(sandbox.state, sandbox.reverie.token) == []


def test_what_takes_the_token_from_the_environment_holds_none(sandbox):
    sandbox.setup("claude-code", host_env=sandbox.in_project())
    assert "Bearer $" in (sandbox.project / ".claude" / "settings.json").read_text()
    assert find_token_files(sandbox.state, sandbox.reverie.token) == []
